"""Benchmarks as researchers exchange them: a folder in the form of xlsa17, with features of every image or photographs.

The form is that of "Zero-Shot Learning: the Good, the Bad and the Ugly" (Xian et al.):

att_splits.mat          `att` (m, L) signatures, `allclasses_names` (L,), and lists of images `trainval_loc`,
                        `test_unseen_loc` and mostly `test_seen_loc`, counted from 1
res101.mat, or another  `features` (D, N), `labels` (N,) counted from 1, and maybe `image_files` (N,)
trainclasses1.txt, ...  with valclasses1.txt, ...: the classes of the validation folds
image_files.mat         maybe: the order of the images that the lists refer to
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pren.data.benchmarks import find_benchmark
from pren.data.mat import texts
from pren.data.partition import Indices, Lists, Partition, SeenTest, TrainOn, partition, validation_partition
from pren.data.xlsa17_files import (
    ORDER_FILE,
    SPLITS_FILE,
    AttributeScale,
    Content,
    Place,
    find_features,
    read_classes,
    read_features,
    read_lists,
    read_signatures,
    read_splits,
)
from pren.data.xlsa17_images import read_images
from pren.errors import PrenError
from pren.files import sha256
from pren.problem import Answers, ClassTable, Problem, Setting

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Choices:
    """What the user may choose about a benchmark; see `load_xlsa17`."""

    features: str | Path | None = None
    images: bool | str | Path | None = None
    signatures: AttributeScale = "normalised"
    fold: int | None = None
    train_on: TrainOn | None = None
    seen_test: SeenTest | None = None


def load_xlsa17(
    root: Path,
    split: str = "own",
    setting: Setting = "zsl",
    features: str | Path | None = None,
    images: bool | str | Path | None = None,
    signatures: AttributeScale = "normalised",
    fold: int | None = None,
    train_on: TrainOn | None = None,
    seen_test: SeenTest | None = None,
    name: str = "xlsa17",
) -> tuple[Problem, Answers]:
    """Read CUB, SUN, SUN10 or AWA2, or any folder in the form of xlsa17.

    SUN10 has no lists of its own but that of its ten test classes: all other images may be learned from, and its folds
    are those of SUN's proposed split without these classes.

    Args:
        root: The folder with `att_splits.mat`; for a benchmark the one that holds ``xlsa17``, or that folder itself.
        split: "PS" (proposed) or "SS" (standard); "SUN10"; "own" for a folder that holds one.
        setting: "zsl" or "gzsl".
        features: A file of this folder (with the proposed split, for a benchmark) by its bare name, or else a path;
            `res101.mat`, or the only file with features, if left out.
        images: The folder with the photographs, to have these instead of features; `image_files.mat`, or a features
            file with `image_files`, must say which is which. True for a benchmark's usual folder below the root.
        signatures: "normalised" (`att`, to unit length) or "original" (`original_att`, as it is).
        fold: A validation problem instead: the classes of `valclasses{fold}.txt` play the unseen ones, those of
            `trainclasses{fold}.txt` are the seen ones, and nothing of the test has a part in it.
        train_on: "all" images of the seen classes (the default), or those of "trainval" (always so in a fold).
        seen_test: For "gzsl": "fixed" (`test_seen_loc`, the default), or "random" (a fifth of each seen class; always
            so in a fold).
        name: "cub", "sun", "sun10" or "awa2"; any other for a folder of its own.

    Returns:
        The problem, its pool shuffled, and the labels of the pool.

    Raises:
        PrenError: If a file is missing (the message says where it is published) or damaged, or does not fit the others.
    """
    place = find_benchmark(root, name, split)
    return _load(place, setting, Choices(features, images, signatures, fold, train_on, seen_test))


def _load(place: Place, setting: Setting, choices: Choices) -> tuple[Problem, Answers]:
    splits = read_splits(place)
    names = texts(splits["allclasses_names"], f"{place.folder / SPLITS_FILE}: allclasses_names")
    content = _content(place, choices, names)
    labels = content.labels
    try:
        signatures = read_signatures(splits, choices.signatures, names)
        lists = read_lists(splits, labels, names)
        if place.test_classes is not None:
            lists = _recut(lists, read_classes(place.folder / place.test_classes, names))
        part, fold_files = _partition(lists, names, place, setting, choices)
        rows = np.union1d(part.seen, part.unseen)
        if choices.fold is None and len(rows) < len(names):
            log.warning(
                "%s: %d classes have no images in any list and are left out.", place.name, len(names) - len(rows)
            )
        signatures = signatures.take(rows)
        classes = ClassTable.build(
            signatures.names,
            signatures.values,
            np.isin(rows, part.seen),
            normalise=choices.signatures == "normalised",
        )
        source: dict[str, Any] = {
            "name": place.name,
            "split": place.split,
            "signatures": signatures.record(),
            "files": {path.name: sha256(path) for path in (place.folder / SPLITS_FILE, content.file, *fold_files)},
            "fold": choices.fold,
            "train_on": part.train_on,
            "seen_test": part.seen_test,
        }
        if content.names is not None:
            source["images"] = {"listed": len(content.names), "train": len(part.train), "pool": len(part.pool)}
        problem = Problem(
            train=content.take(part.train),
            labels=np.searchsorted(rows, labels[part.train]),
            pool=content.take(part.pool),
            classes=classes,
            setting=setting,
            source=source,
        )
    except PrenError as error:
        raise PrenError(f"{place.folder}: {error}") from error
    files = None if content.names is None else tuple(content.names[place] for place in part.pool)
    return problem, Answers(np.searchsorted(rows, labels[part.pool]), files)


def _content(place: Place, choices: Choices, names: list[str]) -> Content:
    """Features, or the photographs themselves."""
    if choices.images is None or choices.images is False:
        path = find_features(place, choices.features)
        return read_features(path, place.features / ORDER_FILE, len(names))
    if choices.features is not None:
        raise PrenError(f"{place.name} is read from features or from images, not from both: leave one of them out.")
    return read_images(place, choices.images, names)


def _partition(
    lists: Lists, names: list[str], place: Place, setting: Setting, choices: Choices
) -> tuple[Partition, list[Path]]:
    """Which images and classes there are, and the files that a fold was read from."""
    if choices.fold is None:
        return partition(lists, setting, choices.train_on, choices.seen_test), []
    files = [place.folder / f"{kind}classes{choices.fold}.txt" for kind in ("train", "val")]
    if not all(path.is_file() for path in files):
        raise PrenError(f"There is no fold {choices.fold}: {files[0].name} or {files[1].name} is missing.")
    train_classes, val_classes = (read_classes(path, names) for path in files)
    if np.intersect1d(train_classes, val_classes).size:
        raise PrenError(f"{files[0].name} and {files[1].name} share classes: one of them is wrong.")
    if place.test_classes is not None:  # the lists were made for another test, which these classes had no part in
        train_classes, val_classes = (np.setdiff1d(c, lists.unseen()) for c in (train_classes, val_classes))
    for path, classes in zip(files, (train_classes, val_classes), strict=True):
        strangers = np.setdiff1d(classes, lists.seen())
        if strangers.size:
            raise PrenError(
                f"{path.name} lists {names[strangers[0]]!r}, which has no trainval images. Is it the list of "
                "another split?"
            )
    return validation_partition(lists, train_classes, val_classes, setting, choices.train_on, choices.seen_test), files


def _recut(lists: Lists, test_classes: Indices) -> Lists:
    """The lists of a split that is defined by its test classes alone: every image of the others may be learned from."""
    is_test = np.isin(lists.labels, test_classes)
    return Lists(lists.labels, np.flatnonzero(~is_test), np.flatnonzero(is_test), None)
