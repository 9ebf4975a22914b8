"""What there is of a data set, what is missing and where it can be had."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pren.data.benchmarks import FOLDERS, PUBLISHED, find_benchmark
from pren.data.mat import mat_shapes, texts
from pren.data.registry import DATASETS, ROOT_VARIABLE, data_root, load
from pren.data.xlsa17_files import (
    ORDER_FILE,
    SPLITS_FILE,
    USUAL_FEATURES,
    Place,
    read_classes,
    read_splits,
)
from pren.data.xlsa17_images import find_files, read_order
from pren.errors import PrenError
from pren.files import sha256

FOLDS = (1, 2, 3)
KINDS = ("train", "val")  # of the lists of classes that make a fold


@dataclass(frozen=True)
class SplitCounts:
    """One split; None where it cannot be known.

    Attributes:
        split: Its name.
        seen: Seen classes.
        unseen: Unseen classes.
        trainval: Images to learn from.
        test_seen: Test images of seen classes.
        test_unseen: Test images of unseen classes.
        folds: Validation folds that are there.
        sha256: Of the file with the split, which tells versions apart that bear the same name.
    """

    split: str
    seen: int | None
    unseen: int | None
    trainval: int | None
    test_seen: int | None
    test_unseen: int | None
    folds: tuple[int, ...] = ()
    sha256: str | None = None


@dataclass(frozen=True)
class ImageCounts:
    """The photographs of a benchmark.

    Attributes:
        looked: The folders they were looked for in.
        folder: The one of them that is there; None if none is.
        found: How many of the images that the split's lists count are in it; None if it cannot be known.
        listed: How many the lists count; None if it cannot be known.
        published: Where they can be had.
    """

    looked: list[str]
    folder: str | None
    found: int | None
    listed: int | None
    published: str


@dataclass(frozen=True)
class Survey:
    """What is known about a data set.

    Attributes:
        name: The data set.
        summary: One line for people.
        root: The folder that was looked at; None for data that are embedded, or if no folder is known.
        splits: What was found.
        features: Files with features, and their shape (D, N).
        images: The photographs; None for data that have no usual place for them, or if no split was found.
        missing: What is not there or cannot be read, as sentences.
        published: Where it can be had; empty if nowhere.
    """

    name: str
    summary: str
    root: str | None = None
    splits: list[SplitCounts] = field(default_factory=list)
    features: dict[str, tuple[int, ...]] = field(default_factory=dict)
    images: ImageCounts | None = None
    missing: list[str] = field(default_factory=list)
    published: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def survey(name: str, root: str | Path | None = None) -> Survey:
    """Look at a data set without loading features.

    Args:
        name: One of `pren.data.list_datasets`.
        root: The folder with the data; the environment variable ``PREN_DATA`` if left out.

    Raises:
        PrenError: If there is no such data set. Missing and damaged files are part of the answer.
    """
    dataset = DATASETS[name]
    if not dataset.needs_root:
        return Survey(name, dataset.summary, splits=[_embedded(name, split) for split in dataset.splits or (None,)])
    folder = data_root(name, root)
    found = Survey(
        name, dataset.summary, None if folder is None else str(folder), published=PUBLISHED if name in FOLDERS else ""
    )
    if folder is None:
        found.missing.append(f"No folder is given: use --root, or the environment variable {ROOT_VARIABLE}.")
        return found
    if name not in (*FOLDERS, "xlsa17"):  # how it is kept, the package that brings it knows
        return found
    for split in dataset.splits:
        try:
            place = find_benchmark(folder, name, split)
            found.splits.append(_split_counts(place))
        except PrenError as error:
            found.missing.append(str(error).removesuffix(f" {PUBLISHED}"))
            continue
        if not found.features:
            _look_for_features(place.features, found)
    if found.splits and not found.features:
        found.missing.append(f"There is no features file, such as {USUAL_FEATURES}, in {place.features}.")
    return replace(found, images=_look_for_images(place, found)) if found.splits and place.images else found


def _embedded(name: str, split: str | None) -> SplitCounts:
    problem, _ = load(name, split=split)
    classes = problem.classes
    return SplitCounts(
        split or "own",
        seen=int(classes.seen.sum()),
        unseen=int(classes.unseen.sum()),
        trainval=len(problem.train),
        test_seen=None,
        test_unseen=len(problem.pool),
    )


def _split_counts(place: Place) -> SplitCounts:
    content = read_splits(place)
    names = texts(content["allclasses_names"], f"{place.folder / SPLITS_FILE}: allclasses_names")
    digest = sha256(place.folder / SPLITS_FILE)
    folds = tuple(k for k in FOLDS if all((place.folder / f"{kind}classes{k}.txt").is_file() for kind in KINDS))
    if place.test_classes is not None:  # which images those are, only the features file knows
        unseen = len(read_classes(place.folder / place.test_classes, names))
        return SplitCounts(place.split, len(names) - unseen, unseen, None, None, None, folds, digest)
    return SplitCounts(
        place.split,
        seen=_count_classes(place.folder / "trainvalclasses.txt", names),
        unseen=_count_classes(place.folder / "testclasses.txt", names),
        trainval=content["trainval_loc"].size,
        test_seen=content["test_seen_loc"].size if "test_seen_loc" in content else None,
        test_unseen=content["test_unseen_loc"].size,
        folds=folds,
        sha256=digest,
    )


def _count_classes(path: Path, names: list[str]) -> int | None:
    return len(read_classes(path, names)) if path.is_file() else None


def _look_for_features(folder: Path, found: Survey) -> None:
    for path in sorted(folder.glob("*.mat")):
        if path.name not in (SPLITS_FILE, ORDER_FILE):
            try:
                shapes = mat_shapes(path)
            except PrenError as error:
                found.missing.append(str(error))
                continue
            if "features" in shapes:
                found.features[path.name] = shapes["features"]


def _look_for_images(place: Place, found: Survey) -> ImageCounts:
    """Count the photographs; that there are none is not missed, because features do as well."""
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


def own_folds(name: str, root: str | Path | None = None, split: str | None = None) -> tuple[int, ...]:
    """The numbers of the validation folds that a split comes with; none for embedded data and the user's own files."""
    if name not in DATASETS or not DATASETS[name].needs_root:
        return ()
    wanted = split or DATASETS[name].splits[0]
    return next((found.folds for found in survey(name, root).splits if found.split == wanted), ())
