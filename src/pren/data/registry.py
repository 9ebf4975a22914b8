"""Data sets by name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pren.data.arrays import load_arrays
from pren.data.benchmarks import SPLITS as BENCHMARK_SPLITS
from pren.data.benchmarks import load_benchmark
from pren.data.folder import load_folder
from pren.data.numbers import SPLITS, load_numbers
from pren.data.xlsa17 import load_xlsa17
from pren.errors import PrenError, suggest
from pren.files import is_folder
from pren.problem import Answers, Problem, Setting

ROOT_VARIABLE = "PREN_DATA"  # the environment variable that says where data are, read by `data_root` alone
Loaded = tuple[Problem, Answers | None]


@dataclass(frozen=True)
class Dataset:
    """One data set that can be loaded by name.

    Attributes:
        name: What `load` knows it by.
        summary: One line for people.
        load: Called with `split`, `setting` and its own options, and with `root` if it needs one.
        splits: Which there are; the first is the default.
        params: Recommended parameters of PrEN and its variants.
        needs_root: Whether it is read from a folder (`root`) that the user has.
        file_options: Those of its options that name files: of its own folder by a bare name, else by a path.
        folder_options: Those of its options that may be the path of a folder.
    """

    name: str
    summary: str
    load: Callable[..., Loaded]
    splits: tuple[str, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    needs_root: bool = False
    file_options: tuple[str, ...] = ()
    folder_options: tuple[str, ...] = ()


def _benchmark(name: str, summary: str) -> Dataset:
    """One of the standard benchmarks, read from features or images that the user has."""
    return Dataset(
        name=name,
        summary=summary,
        load=partial(load_benchmark, name=name),
        splits=BENCHMARK_SPLITS[name],
        needs_root=True,
        file_options=("features",),
        folder_options=("images",),
    )


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="numbers",
            summary="The numbers 00 to 99 in real handwritten digits; embedded, nothing to download.",
            load=load_numbers,
            splits=SPLITS,
            params={"dim": 10, "hidden": (128, 128)},
        ),
        Dataset(
            name="numbers-features",
            summary="The same as flat pixels, for quick trials of methods that take features.",
            load=partial(load_numbers, form="features"),
            splits=SPLITS,
            params={"dim": 10, "hidden": (128, 128)},
        ),
        _benchmark(
            "cub", "200 bird species (Caltech-UCSD Birds): 150 seen, 50 unseen; features or images from --root."
        ),
        _benchmark("sun", "717 kinds of scenes (SUN Attributes): 645 seen, 72 unseen; features or images from --root."),
        _benchmark(
            "sun10", "The same with ten unseen classes (Jayaraman & Grauman): 707 seen; features or images from --root."
        ),
        _benchmark(
            "awa2", "50 animals (Animals with Attributes 2): 40 seen, 10 unseen; features or images from --root."
        ),
        Dataset(
            name="xlsa17",
            summary="Any folder in the form of the xlsa17 benchmarks: att_splits.mat and a features file.",
            load=load_xlsa17,
            splits=("own",),
            needs_root=True,
            file_options=("features",),
            folder_options=("images",),
        ),
    )
}


def list_datasets(pattern: str = "*") -> list[str]:
    """Return the names that match a pattern such as ``"num*"``, sorted."""
    return sorted(name for name in DATASETS if fnmatchcase(name, pattern))


def recommended_params(name: str | Path) -> dict[str, Any]:
    """The parameters of PrEN and its variants that suit a data set; empty for data of the user's own."""
    return dict(DATASETS[str(name)].params) if str(name) in DATASETS else {}


def file_options(name: str | Path) -> tuple[str, ...]:
    """The options of a data set that name files; none for data of the user's own."""
    return DATASETS[str(name)].file_options if str(name) in DATASETS else ()


def folder_options(name: str | Path) -> tuple[str, ...]:
    """The options of a data set that may be the path of a folder; none for a file of the user's own."""
    return DATASETS[str(name)].folder_options if str(name) in DATASETS else ()


def is_path(name: str | Path) -> bool:
    """Whether a name means a file or a folder of the user's own, be it there or not, and not a registered data set."""
    text = str(name)
    if text in DATASETS:
        return False
    return text.lower().endswith(".npz") or Path(text).name != text or is_folder(text)


def data_root(name: str, root: str | Path | None) -> Path | None:
    """Where a data set is read from: the folder given or, for one that needs a folder, the one `PREN_DATA` names."""
    if root is None and DATASETS[name].needs_root:
        root = os.environ.get(ROOT_VARIABLE) or None
    return None if root is None else Path(root)


def load(
    name: str | Path,
    root: str | Path | None = None,
    split: str | None = None,
    setting: Setting = "zsl",
    **options: Any,
) -> Loaded:
    """Load a problem and, kept apart from it, its answers.

    Args:
        name: One of `list_datasets`, or the path of a ``.npz`` file (see `pren.data.arrays`) or of a folder of
            photographs (see `pren.data.folder`).
        root: The folder with the data, for data sets that need one; the environment variable ``PREN_DATA`` if left out.
        split: Which split; the data set's first if left out.
        setting: "zsl" or "gzsl".
        **options: What this data set alone understands.

    Returns:
        The problem, and the answers, None where nobody knows any.

    Raises:
        PrenError: If there is no such data set, split or option, or the data cannot be read.
    """
    if is_path(name):
        if root is not None or split is not None:
            raise PrenError(f"{name} is data of its own, with no root and no splits: leave both out.")
        loader = _own_loader(name)
        return loader(name, setting=setting, **_checked(str(name), loader, options, taken={"path", "setting"}))

    dataset = DATASETS.get(str(name))
    if dataset is None:
        raise PrenError(
            f"There is no data set {str(name)!r}. {suggest(str(name), DATASETS)} "
            "Data of your own are given as the path of a .npz file, or of a folder of photographs."
        )
    if root is not None and not dataset.needs_root:
        raise PrenError(f"{dataset.name} takes no root: it is not read from a folder. Leave root out.")
    folder = data_root(dataset.name, root)
    if folder is None and dataset.needs_root:
        raise PrenError(
            f"{dataset.name} is read from a folder: give it as root (--root), or in the environment variable "
            f"{ROOT_VARIABLE}."
        )
    split = dataset.splits[0] if split is None else split
    if split not in dataset.splits:
        raise PrenError(f"{dataset.name} has no split {split!r}: choose one of {', '.join(dataset.splits)}.")
    fixed = dataset.load.keywords if isinstance(dataset.load, partial) else {}
    options = _checked(dataset.name, dataset.load, options, taken={"root", "split", "setting", *fixed})
    if dataset.needs_root:
        options["root"] = folder
    return dataset.load(split=split, setting=setting, **options)


def _own_loader(path: str | Path) -> Callable[..., Loaded]:
    """What reads the user's own data."""
    if str(path).lower().endswith(".npz"):
        return load_arrays
    if os.path.lexists(path) and not is_folder(path):
        raise PrenError(f"{path} is neither a .npz file nor a folder: data of your own are one of the two.")
    return load_folder


def _checked(name: str, loader: Callable[..., Loaded], options: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    """Options with the types that the loader declares; they may come from the command line or a file."""
    known = [option for option in inspect.signature(loader).parameters if option not in taken]
    hints = get_type_hints(loader.func if isinstance(loader, partial) else loader)
    checked = {}
    for option, value in options.items():
        if option not in known:
            raise PrenError(f"{name} has no option {option!r}: it has {', '.join(known) or 'none'}.")
        try:
            checked[option] = TypeAdapter(hints.get(option, Any), config=ConfigDict(extra="forbid")).validate_python(
                value
            )
        except ValidationError as error:
            problems = "; ".join(dict.fromkeys(detail["msg"].lower() for detail in error.errors()))
            raise PrenError(f"{name}: option {option}={value!r}: {problems}.") from None
    return checked
