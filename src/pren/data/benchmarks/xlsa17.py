"""Benchmarks in the form of xlsa17: a folder with features of every image, or photographs.

The form is that of "Zero-Shot Learning: the Good, the Bad and the Ugly" (Xian et al.):

att_splits.mat          `att` (m, L) signatures, `allclasses_names` (L,), and lists of images `trainval_loc`,
                        `test_unseen_loc` and mostly `test_seen_loc`, counted from 1
res101.mat, or another  `features` (D, N), `labels` (N,) counted from 1, and maybe `image_files` (N,)
sent_splits.mat         maybe: `att` (m, L) of another source, sentences; its classes in the same order
trainclasses1.txt, ...  with valclasses1.txt, ...: the classes of the validation folds
image_files.mat         maybe: the order of the images that the lists refer to
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pren.data.benchmarks.partition import Indices, Lists, SeenTest, TrainOn, partition
from pren.data.benchmarks.registered import find_benchmark
from pren.data.benchmarks.xlsa17_files import (
    SPLITS_FILE,
    AttributeScale,
    Content,
    Place,
    Splits,
    read_classes,
    read_features,
)
from pren.data.benchmarks.xlsa17_images import read_images
from pren.data.benchmarks.xlsa17_sources import read_sources
from pren.data.describe import Recipe, combine
from pren.foundation.errors import PrenError
from pren.foundation.files import sha256
from pren.problem import Answers, ClassTable, Problem, Setting

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Choices:
    """The user's choices for a benchmark; see `load_xlsa17`."""

    features: str | Path | None = None
    images: bool | str | Path | None = None
    signatures: str = "attributes"
    signature_weights: Sequence[float] | None = None
    scale: AttributeScale = "normalised"
    fold: int | None = None
    train_on: TrainOn | None = None
    seen_test: SeenTest | None = None


def load_xlsa17(
    root: Path,
    split: str = "own",
    setting: Setting = "zsl",
    features: str | Path | None = None,
    images: bool | str | Path | None = None,
    signatures: str = "attributes",
    signature_weights: list[float] | None = None,
    scale: AttributeScale = "normalised",
    fold: int | None = None,
    train_on: TrainOn | None = None,
    seen_test: SeenTest | None = None,
    name: str = "xlsa17",
) -> tuple[Problem, Answers]:
    """Read CUB, SUN, SUN10 or AWA2, or any folder in the form of xlsa17.

    SUN10 only has a list of its ten test classes: all other images are training images, and its folds are those of
    SUN's proposed split without these classes.

    Args:
        root: The folder with `att_splits.mat`; for a benchmark the one that holds ``xlsa17``, or that folder itself.
        split: "PS" (proposed) or "SS" (standard); "SUN10"; "own" for a folder that holds one.
        setting: "zsl" or "gzsl".
        features: A file of this folder (with the proposed split, for a benchmark) by its bare name, or else a path;
            `res101.mat`, or the only file with features, if left out.
        images: The folder with the photographs, to have these instead of features; `image_files.mat`, or a features
            file with `image_files`, must say which is which. True for a benchmark's usual folder below the root.
        signatures: "attributes", "sentences" (`sent_splits.mat`), or both with a comma between them: then each is
            centred and scaled by the seen classes (in a fold: those of the fold).
        signature_weights: For several sources: what each is multiplied with after that.
        scale: "normalised" (`att`, to unit length) or "original" (`original_att`, as it is).
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
    choices = Choices(features, images, signatures, signature_weights, scale, fold, train_on, seen_test)
    return _load(place, setting, choices)


def _load(place: Place, setting: Setting, choices: Choices) -> tuple[Problem, Answers]:
    splits = Splits.read(place)
    names = splits.names
    content = _content(place, choices, names)
    labels = content.labels
    try:
        lists = splits.lists(labels)
        if place.test_classes is not None:  # all images of other classes are training images
            is_test = np.isin(labels, read_classes(place.folder / place.test_classes, names))
            lists = Lists(labels, np.flatnonzero(~is_test), np.flatnonzero(is_test), None)
        fold, fold_files = (None, []) if choices.fold is None else _read_fold(choices.fold, place, lists, names)
        part = partition(lists, setting, choices.train_on, choices.seen_test, fold)
        rows = np.union1d(part.seen, part.unseen)
        left_out = len(names) - len(rows)
        if fold is None and left_out:
            log.warning("%s: %d classes have no images in any list and are left out.", place.name, left_out)
        sources = read_sources(place, splits, choices.signatures, choices.scale)
        for origin in sources:
            origin.warn(labels, part.unseen)
        seen = np.isin(rows, part.seen)
        made = [origin.signatures.take(rows) for origin in sources]
        signatures = combine(made, seen, choices.signature_weights)
        # Several sources are already scaled, and their lengths matter.
        normalise = choices.scale == "normalised" and len(sources) == 1
        files = [place.folder / SPLITS_FILE, content.file, *fold_files, *(origin.file for origin in sources)]
        source: dict[str, Any] = {
            "name": place.name,
            "split": place.split,
            "signatures": signatures.record(),
            "files": {path.name: sha256(path) for path in dict.fromkeys(files)},
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
            classes=ClassTable.build(
                signatures.names, signatures.values, seen, normalise=normalise, attributes=signatures.attributes
            ),
            setting=setting,
            source=source,
            recipe=Recipe.of(made, seen, choices.signature_weights).model_dump(),
        )
    except PrenError as error:
        raise PrenError(error.code, f"{place.folder}: {error}") from error
    images = None if content.names is None else tuple(content.names[place] for place in part.pool)
    return problem, Answers(np.searchsorted(rows, labels[part.pool]), images)


def _content(place: Place, choices: Choices, names: list[str]) -> Content:
    """Features, or the photographs themselves."""
    if choices.images is None or choices.images is False:
        return read_features(place, choices.features, len(names))
    if choices.features is not None:
        raise PrenError("option-conflict", f"{place.name} takes features or images, not both: leave one out.")
    return read_images(place, choices.images, names)


def _read_fold(number: int, place: Place, lists: Lists, names: list[str]) -> tuple[tuple[Indices, Indices], list[Path]]:
    """The classes that stay seen in a fold, those that count as unseen, and the files with them."""
    files = [place.folder / f"{kind}classes{number}.txt" for kind in ("train", "val")]
    if not all(path.is_file() for path in files):
        raise PrenError("fold-missing", f"There is no fold {number}: {files[0].name} or {files[1].name} is missing.")
    train, val = (read_classes(path, names) for path in files)
    if np.intersect1d(train, val).size:
        raise PrenError("fold-overlap", f"{files[0].name} and {files[1].name} share classes: one of them is wrong.")
    if place.test_classes is not None:  # the folds belong to another split, in which these classes are not test classes
        train, val = (np.setdiff1d(classes, lists.unseen()) for classes in (train, val))
    for path, classes in zip(files, (train, val), strict=True):
        strangers = [names[row] for row in np.setdiff1d(classes, lists.seen())]
        if strangers:
            message = f"{path.name} lists {strangers[0]!r}, which has no trainval images: use the file of this split."
            raise PrenError("fold-foreign-class", message)
    return (train, val), files
