"""Data sets by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from pren.data.arrays import load_arrays
from pren.data.numbers import SPLITS, load_numbers
from pren.errors import PrenError, suggest
from pren.problem import Answers, Problem, Setting

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
    """

    name: str
    summary: str
    load: Callable[..., Loaded]
    splits: tuple[str, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    needs_root: bool = False


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
    )
}


def list_datasets(pattern: str = "*") -> list[str]:
    """Return the names that match a pattern such as ``"num*"``, sorted."""
    return sorted(name for name in DATASETS if fnmatchcase(name, pattern))


def recommended_params(name: str | Path) -> dict[str, Any]:
    """The parameters of PrEN and its variants that suit a data set; empty for a file of the user's own."""
    return dict(DATASETS[str(name)].params) if str(name) in DATASETS else {}


def load(
    name: str | Path,
    root: str | Path | None = None,
    split: str | None = None,
    setting: Setting = "zsl",
    **options: Any,
) -> Loaded:
    """Load a problem and, kept apart from it, its answers.

    Args:
        name: One of `list_datasets`, or the path of a ``.npz`` file (see `pren.data.arrays`).
        root: The folder with the data, for data sets that need one.
        split: Which split; the data set's first if left out.
        setting: "zsl" or "gzsl".
        **options: What this data set alone understands.

    Returns:
        The problem, and the answers, None where nobody knows any.

    Raises:
        PrenError: If there is no such data set, split or option, or the data cannot be read.
    """
    if str(name).lower().endswith(".npz"):
        if root is not None or split is not None:
            raise PrenError(f"{name} is a file of its own, with no root and no splits: leave both out.")
        _check_options(str(name), load_arrays, options, taken={"path", "setting"})
        return load_arrays(name, setting=setting, **options)

    dataset = DATASETS.get(str(name))
    if dataset is None:
        raise PrenError(
            f"There is no data set {str(name)!r}. {suggest(str(name), DATASETS)} "
            "Data of your own are given as the path of a .npz file."
        )
    if root is not None and not dataset.needs_root:
        raise PrenError(f"{dataset.name} takes no root: it is not read from a folder. Leave root out.")
    if root is None and dataset.needs_root:
        raise PrenError(f"{dataset.name} is read from a folder: give it as root.")
    split = dataset.splits[0] if split is None else split
    if split not in dataset.splits:
        raise PrenError(f"{dataset.name} has no split {split!r}: choose one of {', '.join(dataset.splits)}.")
    fixed = dataset.load.keywords if isinstance(dataset.load, partial) else {}
    _check_options(dataset.name, dataset.load, options, taken={"root", "split", "setting", *fixed})
    if dataset.needs_root:
        options["root"] = Path(str(root))
    return dataset.load(split=split, setting=setting, **options)


def _check_options(name: str, loader: Callable[..., Loaded], options: dict[str, Any], taken: set[str]) -> None:
    known = [option for option in inspect.signature(loader).parameters if option not in taken]
    for option in options:
        if option not in known:
            raise PrenError(f"{name} has no option {option!r}: it has {', '.join(known) or 'none'}.")
