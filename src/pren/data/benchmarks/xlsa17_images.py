"""The photographs of a benchmark in the form of xlsa17, instead of features.

The split's lists count images in the order of `image_files`, not of the data set's own lists. Its paths are those on
the authors' disk, so files are found by the end of their path. Nothing is decoded here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.data.benchmarks.mat import read_mat, texts, whole_numbers
from pren.data.benchmarks.partition import Indices
from pren.data.benchmarks.xlsa17_files import ORDER_FILE, USUAL_FEATURES, Content, Place, features_files, tails
from pren.foundation.errors import PrenError
from pren.images.files import ImageFiles
from pren.images.folders import list_images

SHOWN = 3  # missing files that a message names
MOST_PARTS = 64  # of a path: every depth is tried
MOST_SHOWN = 200  # characters of a path in a message


class Order(NamedTuple):
    """The order of the images."""

    file: Path  # the file with this order
    paths: list[str]  # (N,) on its authors' disk
    labels: NDArray[Any] | None = None  # from the same file, unchecked


def read_images(place: Place, wanted: Literal[True] | str | Path, classes: list[str]) -> Content:
    """Find the photograph of every image in the split's lists.

    Args:
        place: The benchmark.
        wanted: The folder with the photographs; True for the usual folders.
        classes: The names of all classes, in the order of the labels.
    """
    folder = _find_folder(place, wanted)
    order = read_order(place)
    labels = _labels(order, classes)
    names, missing = find_files(order, folder)
    if missing:
        lacks = f"{folder} lacks {len(missing)} of the {len(names)} images that {order.file} lists"
        raise PrenError(
            "images-missing", f"{lacks}, first {', '.join(missing[:SHOWN])}. {place.images_published}".rstrip()
        )
    return Content(labels, order.file, lambda places: ImageFiles(folder, [names[i] for i in places]), tuple(names))


def _find_folder(place: Place, wanted: Literal[True] | str | Path) -> Path:
    """The folder with the photographs: the requested one, or the first of the usual ones that exists."""
    candidates = place.images if wanted is True else (Path(wanted),)
    if not candidates:
        raise PrenError("images-missing", f"{place.name} has no usual folder of images: name it (--option images=DIR).")
    found = next((folder for folder in candidates if folder.is_dir()), None)
    if found is None:
        looked = " or ".join(map(str, candidates))
        hint = "If they are elsewhere, name their folder (--option images=DIR). " if wanted is True else ""
        raise PrenError(
            "images-missing", f"There is no folder of images: {looked}. {hint}{place.images_published}".rstrip()
        )
    return found


def read_order(place: Place) -> Order:
    """The order of the images: from `image_files.mat`, or else the usual features file, or else another one."""
    folder = place.features
    for path in (folder / ORDER_FILE, folder / USUAL_FEATURES):
        order = _order(path) if path.is_file() else None
        if order is not None:
            return order
    orders = [order for path in features_files(folder) if (order := _order(path)) is not None]
    if not orders:
        raise PrenError(
            "images-order",
            f"No file in {folder} gives the order of the images: add {ORDER_FILE}, or a features file with "
            f"image_files, such as {USUAL_FEATURES}. {place.published}".rstrip(),
        )
    for other in orders[1:]:
        if tails(other.paths) != tails(orders[0].paths):
            files = f"{orders[0].file} and {other.file.name}"
            raise PrenError(
                "images-order",
                f"{files} list the images in different orders: remove the wrong one, or get {ORDER_FILE}.",
            )
    return orders[0]


def find_files(order: Order, folder: Path) -> tuple[list[str], list[str]]:
    """The name of every image in a folder, and the missing ones."""
    there = set(list_images(folder))
    try:
        names = names_below(order.paths, there)
    except PrenError as error:
        raise PrenError(error.code, f"{order.file}: {error}") from error
    return names, [name for name in names if name not in there]


def names_below(paths: Sequence[str], there: set[str]) -> list[str]:
    """The images' names in a folder: their paths without as many common first parts as fit the folder best.

    Args:
        paths: At least one path on the authors' disk, all different. Their depth can differ, as in SUN.
        there: The names of the files in the folder.
    """
    parts = [_parts(path) for path in paths]
    levels = zip(*(steps[:-1] for steps in parts), strict=False)  # as many as the shortest path has
    shared = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, levels))
    ways = [["/".join(steps[dropped:]) for steps in parts] for dropped in range(shared, -1, -1)]
    name, times = Counter(ways[0]).most_common(1)[0]
    if times > 1:
        raise PrenError("images-repeat", f"image_files lists {name} {times} times: it must name every image once.")
    return max(
        ways, key=lambda names: sum(name in there for name in names)
    )  # the shortest names of several equally good ones


def spelled_class(path: str, rows: dict[str, int]) -> int | None:
    """The class that an image's folders name; None if they name none.

    One folder, or several joined with "_"; the most folders win. In SUN, ``b/bakery/kitchen/x.jpg`` is bakery_kitchen,
    although there is also a class kitchen.
    """
    folders = _parts(path)[:-1]
    joined = ("_".join(folders[start:]) for start in range(len(folders)))  # the longest first
    return next((rows[name] for name in joined if name in rows), None)


def _order(path: Path) -> Order | None:
    """The order of the images in a file; None if it has none."""
    required = ("image_files",) if path.name == ORDER_FILE else ()
    content = read_mat(path, required, ("image_files", "labels"))
    if "image_files" not in content:
        return None
    paths = texts(content["image_files"], f"{path}: image_files")
    if not paths:
        raise PrenError("images-missing", f"{path}: image_files lists no images.")
    for image in paths:
        steps = _parts(image)
        if not 0 < len(steps) <= MOST_PARTS or ".." in steps:
            shown = image if len(image) <= MOST_SHOWN else f"{image[:MOST_SHOWN]}..."
            message = f"{path}: image_files lists {shown!r}, which is not a path in a folder of images."
            raise PrenError("path-outside", message)
    return Order(path, paths, content.get("labels"))


def _labels(order: Order, classes: list[str]) -> Indices:
    """The class of every image, from the file or from the names of folders, which must agree."""
    rows = {name: row for row, name in enumerate(classes)}
    spelled = [spelled_class(path, rows) for path in order.paths]
    if order.labels is None:
        if None in spelled:
            path = order.paths[spelled.index(None)]
            message = f"{order.file} holds no labels, and no folder of {path!r} is a class: add labels."
            raise PrenError("images-labels", message)
        return np.array(spelled, dtype=np.int64)
    labels = whole_numbers(order.labels, f"{order.file}: labels", len(classes), "classes")
    if len(labels) != len(order.paths):
        message = f"{order.file}: there are {len(order.paths)} image_files, but {len(labels)} labels."
        raise PrenError("mat-shape", message)
    for path, row, label in zip(order.paths, spelled, labels, strict=True):
        if row is not None and row != label:
            said = f"{path!r} has the label {classes[label]!r}, but its folder says {classes[row]!r}"
            message = f"{order.file}: {said}: the labels belong to other images or are in another order."
            raise PrenError("images-labels", message)
    return labels


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
