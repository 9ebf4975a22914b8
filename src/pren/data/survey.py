"""Which files of a data set exist, which are missing, and where they are published."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from pren.data.benchmarks.registered import FOLDERS, PUBLISHED, find_benchmark
from pren.data.benchmarks.xlsa17_files import SPLITS_FILE, USUAL_FEATURES, Place, Splits, list_features, read_classes
from pren.data.benchmarks.xlsa17_images import find_files, read_order
from pren.data.benchmarks.xlsa17_sources import there
from pren.data.registry import DATASETS, ROOT_VARIABLE, data_root, load
from pren.foundation.errors import PrenError
from pren.foundation.files import sha256

FOLDS = (1, 2, 3)


@dataclass(frozen=True)
class SplitCounts:
    """How many classes and images a split has; None where it is not known."""

    split: str
    seen: int | None
    unseen: int | None
    trainval: int | None
    test_seen: int | None
    test_unseen: int | None
    folds: tuple[int, ...] = ()
    sha256: str | None = None  # of the file with the split, to distinguish versions of the same name


@dataclass(frozen=True)
class ImageCounts:
    """The photographs of a benchmark."""

    looked: list[str]  # the folders that were searched
    folder: str | None  # the one that exists
    found: int | None  # how many of the listed images are in it; None if it is not known
    listed: int | None  # how many images the split lists; None if it is not known
    published: str


@dataclass(frozen=True)
class Survey:
    """The facts about a data set."""

    name: str
    summary: str
    root: str | None = None  # the folder of the data, if it needs one and one is known
    splits: list[SplitCounts] = field(default_factory=list)
    features: dict[str, tuple[int, ...]] = field(default_factory=dict)  # files and their shape (D, N)
    signatures: dict[str, tuple[int, ...]] = field(default_factory=dict)  # sources and their shape (m, L)
    images: ImageCounts | None = None  # None for data without a usual folder of images, or if no split was found
    missing: list[str] = field(default_factory=list)  # sentences about missing and unreadable files
    published: str = ""  # where it is published


def survey(name: str, root: str | Path | None = None) -> Survey:
    """Survey a data set without loading features.

    Args:
        name: One of `pren.data.list_datasets`.
        root: The folder with the data; the environment variable ``PREN_DATA`` by default.

    Raises:
        PrenError: If there is no such data set. Missing and damaged files are part of the result.
    """
    dataset = DATASETS[name]
    if not dataset.needs_root:
        return Survey(name, dataset.summary, splits=[_embedded(name, split) for split in dataset.splits or (None,)])
    folder, published = data_root(name, root), PUBLISHED if name in FOLDERS else ""
    if folder is None:
        missing = [f"No folder is given: use --root, or the environment variable {ROOT_VARIABLE}."]
        return Survey(name, dataset.summary, missing=missing, published=published)
    found = Survey(name, dataset.summary, str(folder), published=published)
    if not _is_benchmark(name):  # only its own package knows its files
        return found
    for split in dataset.splits:
        try:
            place = find_benchmark(folder, name, split)
            found.splits.append(_split_counts(place))
        except PrenError as error:  # noqa: PERF203 - there are two splits
            found.missing.append(str(error).removesuffix(f" {PUBLISHED}"))
    if not found.splits:
        return found
    features, unreadable = list_features(place.features)
    found.missing.extend(map(str, unreadable))
    if not features:
        found.missing.append(f"There is no features file, such as {USUAL_FEATURES}, in {place.features}.")
    images = _look_for_images(place, found) if place.images else None
    signatures = there(find_benchmark(folder, name, found.splits[0].split))
    return replace(found, features=features, signatures=signatures, images=images)


def own_folds(name: str, root: str | Path | None = None, split: str | None = None) -> tuple[int, ...]:
    """The numbers of a split's own validation folds; none for embedded data and the user's own files."""
    folder = data_root(name, root) if _is_benchmark(name) else None
    if folder is None:
        return ()
    splits = DATASETS[name].splits
    wanted = split or splits[0]
    return _folds(find_benchmark(folder, name, wanted)) if wanted in splits else ()


def _is_benchmark(name: str) -> bool:
    return name in (*FOLDERS, "xlsa17")


def _folds(place: Place) -> tuple[int, ...]:
    files = {k: [place.folder / f"{kind}classes{k}.txt" for kind in ("train", "val")] for k in FOLDS}
    return tuple(k for k in FOLDS if all(path.is_file() for path in files[k]))


def _embedded(name: str, split: str | None) -> SplitCounts:
    problem, _ = load(name, split=split)
    seen, unseen = int(problem.classes.seen.sum()), int(problem.classes.unseen.sum())
    return SplitCounts(split or "own", seen, unseen, len(problem.train), None, len(problem.pool))


def _split_counts(place: Place) -> SplitCounts:
    names, arrays = Splits.read(place)
    folds, digest = _folds(place), sha256(place.folder / SPLITS_FILE)
    if place.test_classes is not None:  # only the features file knows the images of these classes
        count = len(read_classes(place.folder / place.test_classes, names))
        return SplitCounts(place.split, len(names) - count, count, None, None, None, folds, digest)
    files = (place.folder / "trainvalclasses.txt", place.folder / "testclasses.txt")
    seen, unseen = (len(read_classes(path, names)) if path.is_file() else None for path in files)
    keys = ("trainval_loc", "test_seen_loc", "test_unseen_loc")
    trainval, test_seen, test_unseen = (arrays[key].size if key in arrays else None for key in keys)
    return SplitCounts(place.split, seen, unseen, trainval, test_seen, test_unseen, folds, digest)


def _look_for_images(place: Place, found: Survey) -> ImageCounts:
    """Count the photographs; they do not count as missing, because features are enough."""
    folder = next((folder for folder in place.images if folder.is_dir()), None)
    count, listed = (0 if folder is None else None), None
    try:
        order = read_order(place)
        listed = len(order.paths)
        if folder is not None:
            count = listed - len(find_files(order, folder)[1])
    except PrenError as error:
        sentence = str(error).removesuffix(f" {PUBLISHED}")
        if folder is not None and sentence not in found.missing:
            found.missing.append(sentence)
    looked = [str(path) for path in place.images]
    return ImageCounts(looked, None if folder is None else str(folder), count, listed, place.images_published)
