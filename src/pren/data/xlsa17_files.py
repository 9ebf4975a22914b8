"""The files of a folder in the form of xlsa17 (see `pren.data.xlsa17`), read and checked against each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pren.data.mat import mat_shapes, read_mat, texts, whole_numbers
from pren.data.partition import Indices, Lists
from pren.errors import PrenError
from pren.files import read_bytes
from pren.inputs import ArrayInputs, Inputs, SelectedInputs
from pren.signatures import Signatures

SPLITS_FILE = "att_splits.mat"
USUAL_FEATURES = "res101.mat"
ORDER_FILE = "image_files.mat"
ORIGINAL = ("original_att", "att_original")  # both names circulate
MOST_BYTES = 1 << 20  # of a list of classes

AttributeScale = Literal["normalised", "original"]


@dataclass(frozen=True)
class Place:
    """Where a benchmark is and what it is called.

    Attributes:
        name: The data set.
        split: Its split.
        folder: With `att_splits.mat` and the lists of classes.
        features: The folder with the features, which do not depend on the split.
        test_classes: A list of test classes in `folder` that replaces the split's own; None for the split's own.
        published: Where files that are missing can be had.
        images: Folders in which the photographs usually are.
        images_published: Where the photographs can be had.
    """

    name: str
    split: str
    folder: Path
    features: Path
    test_classes: str | None = None
    published: str = ""
    images: tuple[Path, ...] = ()
    images_published: str = ""


@dataclass(frozen=True, eq=False)
class Content:
    """What there is of every image that the split's lists count.

    Attributes:
        labels: (N,) the class of each, counted from 0.
        file: The file that says which image is which.
        take: Makes inputs of some of them, in the order of their places.
        names: (N,) the files of photographs; None for features.
    """

    labels: Indices
    file: Path
    take: Callable[[Indices], Inputs]
    names: tuple[str, ...] | None = None


def read_splits(place: Place) -> dict[str, NDArray[Any]]:
    """Read `att_splits.mat`, unchecked."""
    path = place.folder / SPLITS_FILE
    if not path.exists():
        raise PrenError(f"There is no {SPLITS_FILE} in {place.folder}. {place.published or 'Check the path (root).'}")
    return read_mat(path, ("att", "allclasses_names", "trainval_loc", "test_unseen_loc"), ("test_seen_loc", *ORIGINAL))


def find_features(place: Place, wanted: str | Path | None) -> Path:
    """The file with the features: the one that is wanted, or the usual one, or the only one."""
    folder = place.features
    if wanted is not None:
        is_bare = Path(wanted).name == str(wanted)
        path = folder / wanted if is_bare else Path(wanted)
        if not path.is_file():
            hint = f" A file that is elsewhere is given with its folder, such as ./{wanted}." if is_bare else ""
            raise PrenError(f"There is no features file {path}.{hint} {place.published}".rstrip())
        return path
    if (folder / USUAL_FEATURES).is_file():
        return folder / USUAL_FEATURES
    found = features_files(folder)
    if len(found) != 1:
        what = f"holds several: {', '.join(path.name for path in found)}" if found else f"lacks {USUAL_FEATURES}"
        raise PrenError(
            f"{place.name} needs features of its images, and {folder} {what}. Name a file with the option features "
            f"(--features FILE.mat). {place.published}".rstrip()
        )
    return found[0]


def features_files(folder: Path) -> list[Path]:
    """The files of a folder that hold features.

    Raises:
        PrenError: If there are none, but a file that cannot be read and may be meant.
    """
    found, unreadable = [], []
    for path in sorted(folder.glob("*.mat")):
        if path.name not in (SPLITS_FILE, ORDER_FILE):
            try:
                found += [path] if "features" in mat_shapes(path) else []
            except PrenError as error:
                unreadable.append(error)
    if unreadable and not found:
        raise unreadable[0]
    return found


def read_classes(path: Path, names: list[str]) -> Indices:
    """Read a list of class names, one a line, as places in `names`, rising."""
    try:
        listed = [line.strip() for line in read_bytes(path.resolve(), MOST_BYTES).decode().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise PrenError(f"{path} is not a list of class names: it is not UTF-8 text.") from error
    row = {name: place for place, name in enumerate(names)}
    unknown = [name for name in listed if name not in row]
    if unknown:
        raise PrenError(f"{path} lists {unknown[0]!r}, which is not among the classes of {SPLITS_FILE}.")
    if not listed:
        raise PrenError(f"{path} lists no class.")
    return np.unique([row[name] for name in listed])


def read_features(path: Path, order_file: Path, n_classes: int) -> Content:
    """The (N, D) features as float32, and the labels."""
    content = read_mat(path, ("features", "labels"), ("image_files",))
    array = content["features"]
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise PrenError(f"{path}: features must be numbers (D, N), not {array.dtype} of shape {array.shape}.")
    labels = whole_numbers(content["labels"], f"{path}: labels", n_classes, "classes")
    if array.shape[1] != len(labels):
        turned = " They seem to be transposed." if array.shape[0] == len(labels) else ""
        raise PrenError(
            f"{path}: features have {array.shape[1]} columns, but there are {len(labels)} labels: they must be (D, N)."
            f"{turned}"
        )
    if "image_files" in content:
        _check_order(path, tails(texts(content["image_files"], f"{path}: image_files")), len(labels), order_file)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, which is refused below
        rows = np.ascontiguousarray(array.T, dtype=np.float32)  # no copy if they are float32 already
    return Content(labels, path, partial(SelectedInputs, ArrayInputs(rows, f"{path}: features")))


def _check_order(path: Path, images: list[str], count: int, order_file: Path) -> None:
    """Refuse features in another order than the lists of images refer to."""
    if len(images) != count:
        raise PrenError(f"{path}: there are {len(images)} image_files, but {count} labels.")
    if not order_file.is_file():
        return
    expected = tails(texts(read_mat(order_file, ("image_files",))["image_files"], f"{order_file}: image_files"))
    if images != expected:
        pairs = zip(images, expected, strict=False)
        first = next((place for place, (ours, theirs) in enumerate(pairs) if ours != theirs), min(count, len(expected)))
        raise PrenError(
            f"{path}: its images are not in the order of {order_file.name} (image {first + 1} is the first that "
            "differs): reorder the features by file name."
        )


def tails(paths: list[str]) -> list[str]:
    """Folder and file name: what precedes them is how somebody's disk was organised."""
    return ["/".join(path.replace("\\", "/").split("/")[-2:]) for path in paths]


def read_signatures(splits: dict[str, NDArray[Any]], wanted: AttributeScale, names: list[str]) -> Signatures:
    """The attributes of all classes."""
    key = "att" if wanted == "normalised" else next((key for key in ORIGINAL if key in splits), None)
    if key is None:
        raise PrenError(f"{SPLITS_FILE} has no original signatures ({' or '.join(ORIGINAL)}): use the normalised ones.")
    table = splits[key]
    if key != "att" and table.shape == splits["att"].shape[::-1] != splits["att"].shape:
        table = table.T  # as SUN's standard split has it
    if table.ndim != 2 or table.shape[1] != len(names):
        raise PrenError(f"{SPLITS_FILE}: {key} has shape {table.shape}, but must be (m, {len(names)}).")
    return Signatures(tuple(names), table.T, {"kind": "attributes", "file": SPLITS_FILE, "key": key, "scale": wanted})


def read_lists(splits: dict[str, NDArray[Any]], labels: Indices, names: list[str]) -> Lists:
    """The checked lists of images."""
    lists: dict[str, Indices] = {}
    for key in ("trainval_loc", "test_unseen_loc", "test_seen_loc"):
        if key in splits:
            lists[key] = images = whole_numbers(splits[key], key, len(labels), "images")
            if not len(images):
                raise PrenError(f"{key} is empty.")
            if len(np.unique(images)) < len(images):
                raise PrenError(f"{key} lists an image twice.")
    keys = list(lists)
    for place, one in enumerate(keys):
        for other in keys[place + 1 :]:
            shared = np.intersect1d(lists[one], lists[other])
            if shared.size:
                raise PrenError(f"{one} and {other} share {shared.size} images, first image {shared[0] + 1}.")
    result = Lists(labels, lists["trainval_loc"], lists["test_unseen_loc"], lists.get("test_seen_loc"))
    both = np.intersect1d(result.seen(), result.unseen())
    if both.size:
        raise PrenError(
            f"Class {names[both[0]]!r} is in trainval_loc and in test_unseen_loc ({both.size} such classes): the split "
            "is damaged, or the features belong to other images or are in another order."
        )
    if result.test_seen is not None:
        strangers = np.setdiff1d(labels[result.test_seen], result.seen())
        if strangers.size:
            raise PrenError(f"Class {names[strangers[0]]!r} is in test_seen_loc, but not in trainval_loc.")
    return result
