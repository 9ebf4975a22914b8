"""The files of a folder in the form of xlsa17 (see `xlsa17.py`), read and checked against each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.data.benchmarks.mat import Shapes, mat_shapes, read_mat, texts, whole_numbers
from pren.data.benchmarks.partition import Indices, Lists
from pren.data.describe import Signatures
from pren.foundation.errors import PrenError
from pren.foundation.files import read_bytes
from pren.problem.inputs import ArrayInputs, Inputs, SelectedInputs

SPLITS_FILE = "att_splits.mat"
USUAL_FEATURES = "res101.mat"
ORDER_FILE = "image_files.mat"
LISTS = ("trainval_loc", "test_unseen_loc", "test_seen_loc")
ORIGINAL = ("original_att", "att_original")  # both names circulate
MOST_BYTES = 1 << 20  # of a list of classes

AttributeScale = Literal["normalised", "original"]


class Place(NamedTuple):
    """The name and the folders of a benchmark."""

    name: str
    split: str
    folder: Path  # with `att_splits.mat` and the lists of classes
    features: Path  # the folder with the features, which do not depend on the split
    test_classes: str | None = None  # a list of test classes in `folder` that replaces the split's own
    published: str = ""  # where its files are published
    images: tuple[Path, ...] = ()  # the usual folders of the photographs
    images_published: str = ""


class Content(NamedTuple):
    """The inputs and labels of every image in the split's lists."""

    labels: Indices  # (N,) counted from 0
    file: Path  # the file with the order of the images
    take: Callable[[Indices], Inputs]  # makes inputs of the images at some places
    names: tuple[str, ...] | None = None  # (N,) the files of photographs; None for features


class Splits(NamedTuple):
    """`att_splits.mat`: the classes, and arrays that are checked when they are used."""

    names: list[str]
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def read(cls, place: Place) -> Splits:
        """Read it from the folder of a benchmark."""
        path = place.folder / SPLITS_FILE
        if not path.exists():
            hint = place.published or "Check the path (root)."
            raise PrenError("splits-missing", f"There is no {SPLITS_FILE} in {place.folder}. {hint}")
        required = ("att", "allclasses_names", "trainval_loc", "test_unseen_loc")
        arrays = read_mat(path, required, ("test_seen_loc", *ORIGINAL))
        return cls(texts(arrays["allclasses_names"], f"{path}: allclasses_names"), arrays)

    def signatures(self, wanted: AttributeScale) -> Signatures:
        """The attributes of all classes."""
        key = "att" if wanted == "normalised" else next((key for key in ORIGINAL if key in self.arrays), None)
        if key is None:
            message = f"{SPLITS_FILE} has no original signatures ({' or '.join(ORIGINAL)}): use scale=normalised."
            raise PrenError("signatures-unknown", message)
        table, usual = self.arrays[key], self.arrays["att"].shape
        if key != "att" and table.shape == usual[::-1] != usual:
            table = table.T  # as in SUN's standard split
        if table.ndim != 2 or table.shape[1] != len(self.names):
            message = f"{SPLITS_FILE}: {key} has shape {table.shape}, but must be (m, {len(self.names)})."
            raise PrenError("mat-shape", message)
        source = {"kind": "attributes", "file": SPLITS_FILE, "key": key, "scale": wanted}
        return Signatures(tuple(self.names), table.T, source)

    def lists(self, labels: Indices) -> Lists:
        """The checked lists of images."""
        lists: dict[str, Indices] = {}
        for key in LISTS:
            if key in self.arrays:
                lists[key] = images = whole_numbers(self.arrays[key], key, len(labels), "images")
                if not len(images):
                    raise PrenError("split-empty", f"{key} is empty.")
                if len(np.unique(images)) < len(images):
                    raise PrenError("split-repeats", f"{key} lists an image twice.")
        for one, other in combinations(lists, 2):
            shared = np.intersect1d(lists[one], lists[other])
            if shared.size:
                message = f"{one} and {other} share {shared.size} images, first image {shared[0] + 1}."
                raise PrenError("split-overlap", message)
        result = Lists(labels, lists["trainval_loc"], lists["test_unseen_loc"], lists.get("test_seen_loc"))
        both = np.intersect1d(result.seen(), result.unseen())
        if both.size:
            clash = f"Class {self.names[both[0]]!r} is in trainval_loc and in test_unseen_loc ({both.size} such)"
            raise PrenError("split-clash", f"{clash}: the split is damaged, or the images are in another order.")
        if result.test_seen is not None:
            strangers = np.setdiff1d(labels[result.test_seen], result.seen())
            if strangers.size:
                message = f"Class {self.names[strangers[0]]!r} is in test_seen_loc, but not in trainval_loc."
                raise PrenError("split-clash", message)
        return result


def list_features(folder: Path) -> tuple[Shapes, list[PrenError]]:
    """The files of a folder that hold features, with their shapes (D, N), and the errors of unreadable files."""
    found: Shapes = {}
    unreadable = []
    for path in sorted(folder.glob("*.mat")):
        if path.name not in (SPLITS_FILE, ORDER_FILE):
            try:
                shapes = mat_shapes(path)
            except PrenError as error:
                unreadable.append(error)
            else:
                found |= {path.name: shapes["features"]} if "features" in shapes else {}
    return found, unreadable


def features_files(folder: Path) -> list[Path]:
    """The files of a folder that hold features; raises if there are none and a file cannot be read."""
    found, unreadable = list_features(folder)
    if unreadable and not found:
        raise unreadable[0]
    return [folder / name for name in found]


def _find_features(place: Place, wanted: str | Path | None) -> Path:
    """The file with the features: the requested one, or the usual one, or the only one."""
    folder = place.features
    if wanted is not None:
        is_bare = Path(wanted).name == str(wanted)
        path = folder / wanted if is_bare else Path(wanted)
        if not path.is_file():
            hint = f" Give a file elsewhere with its folder, such as ./{wanted}." if is_bare else ""
            raise PrenError("features-missing", f"There is no features file {path}.{hint} {place.published}".rstrip())
        return path
    if (folder / USUAL_FEATURES).is_file():
        return folder / USUAL_FEATURES
    found = features_files(folder)
    if len(found) != 1:
        what = f"holds several: {', '.join(path.name for path in found)}" if found else f"lacks {USUAL_FEATURES}"
        raise PrenError(
            "features-missing",
            f"{place.name} needs features of its images, and {folder} {what}. Name a file "
            f"(--features-file FILE.mat). {place.published}".rstrip(),
        )
    return found[0]


def read_features(place: Place, wanted: str | Path | None, n_classes: int) -> Content:
    """The (N, D) features as float32, and the labels; see `load_xlsa17` for `wanted`."""
    path = _find_features(place, wanted)
    content = read_mat(path, ("features", "labels"), ("image_files",))
    array = content["features"]
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        message = f"{path}: features must be numbers (D, N), not {array.dtype} of shape {array.shape}."
        raise PrenError("mat-shape", message)
    labels = whole_numbers(content["labels"], f"{path}: labels", n_classes, "classes")
    count = len(labels)
    if array.shape[1] != count:
        turned = " They seem to be transposed." if array.shape[0] == count else ""
        message = f"{path}: features (D, N) have {array.shape[1]} columns for {count} labels.{turned}"
        raise PrenError("mat-shape", message)
    if "image_files" in content:
        _check_order(path, tails(texts(content["image_files"], f"{path}: image_files")), count, place)
    with np.errstate(over="ignore"):  # values too large for float32 become infinite and are refused below
        rows = np.ascontiguousarray(array.T, dtype=np.float32)  # no copy if they are float32 already
    return Content(labels, path, partial(SelectedInputs, ArrayInputs(rows, f"{path}: features")))


def _check_order(path: Path, images: list[str], count: int, place: Place) -> None:
    """Refuse features that are not in the order of the split's images."""
    if len(images) != count:
        raise PrenError("mat-shape", f"{path}: there are {len(images)} image_files, but {count} labels.")
    file = place.features / ORDER_FILE
    if not file.is_file():
        return
    expected = tails(texts(read_mat(file, ("image_files",))["image_files"], f"{file}: image_files"))
    if images != expected:
        pairs = enumerate(zip(images, expected, strict=False))
        first = next((image for image, (ours, theirs) in pairs if ours != theirs), min(count, len(expected)))
        where = f"(image {first + 1} is the first that differs)"
        message = f"{path}: its images are not in the order of {ORDER_FILE} {where}: reorder the features."
        raise PrenError("images-order", message)


def tails(paths: list[str]) -> list[str]:
    """The last folder and the file name of each path; what precedes them depends on the authors' disk."""
    return ["/".join(path.replace("\\", "/").split("/")[-2:]) for path in paths]


def read_classes(path: Path, names: list[str]) -> Indices:
    """Read a list of class names, one per line, as places in `names`, ascending."""
    try:
        listed = [line.strip() for line in read_bytes(path.resolve(), MOST_BYTES).decode().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise PrenError("not-text", f"{path} is not a list of class names: it is not UTF-8 text.") from error
    row = {name: place for place, name in enumerate(names)}
    unknown = [name for name in listed if name not in row]
    if unknown:
        message = f"{path} lists {unknown[0]!r}, which is not among the classes of {SPLITS_FILE}."
        raise PrenError("split-foreign-class", message)
    if not listed:
        raise PrenError("split-empty", f"{path} lists no class.")
    return np.unique([row[name] for name in listed])
