"""Data sets by name, and the user's own data by path."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pren.foundation.errors import PrenError
from pren.foundation.files import is_folder
from pren.foundation.registry import Registry, resolve
from pren.problem import Answers, Problem, Setting

ROOT_VARIABLE = "PREN_DATA"  # the environment variable with the folder of the data; only `data_root` reads it
Loaded = tuple[Problem, Answers | None]
Loader = TypeVar("Loader", bound=Callable[..., Loaded])


@dataclass(frozen=True)
class Dataset:
    """One data set; see `register_dataset`."""

    name: str
    summary: str
    home: Callable[..., Loaded] | str
    splits: tuple[str, ...] = ()
    needs_root: bool = False
    file_options: tuple[str, ...] = ()
    folder_options: tuple[str, ...] = ()
    photographs: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def load(self) -> Callable[..., Loaded]:
        """The function that loads it, imported when it is used."""
        loader = resolve(self.home) if isinstance(self.home, str) else self.home
        return partial(loader, **self.fixed) if self.fixed else loader

    def has_photographs(self, options: Mapping[str, Any]) -> bool:
        """Whether it loads photographs with these options."""
        return self.photographs or bool(options.get("images"))


DATASETS: Registry[Dataset] = Registry("data set")


def register_dataset(
    name: str,
    summary: str,
    splits: tuple[str, ...] = (),
    *,
    needs_root: bool = False,
    file_options: tuple[str, ...] = (),
    folder_options: tuple[str, ...] = (),
) -> Callable[[Loader], Loader]:
    """Register the decorated function as a data set.

    It is called with `setting`, with `split` if there are splits, with `root` if it needs one, and with its own options
    (``--option``), whose types are their annotations. It returns a `Problem`, and `Answers` or None.

    Args:
        name: Its name for `load`.
        summary: One line for people.
        splits: Its splits; the first is the default.
        needs_root: Whether it is read from a folder of the user (`root`).
        file_options: Options that name files: by a bare name in its own folder, otherwise by a path.
        folder_options: Options that can be the path of a folder.
    """

    def register(loader: Loader) -> Loader:
        entry = Dataset(name, summary, loader, splits, needs_root, file_options, folder_options)
        DATASETS.add(name, entry)
        return loader

    return register


ATTRIBUTES = "attributes"  # the signatures that every data set has
_BENCHMARKS = "pren.data.benchmarks.xlsa17:load_xlsa17"
_BOTH = ("PS", "SS")
_NUMBERS = {
    "numbers": ("The numbers 00 to 99 in real handwritten digits; embedded, nothing to download.", {}),
    "numbers-features": (
        "The same as flat pixels, for quick trials of methods that take features.",
        {"form": "features"},
    ),
}
for _name, (_summary, _fixed) in _NUMBERS.items():
    DATASETS.add(_name, Dataset(_name, _summary, "pren.data.numbers:load_numbers", ("test", "val"), fixed=_fixed))
for _name, _splits, _summary in (
    ("cub", _BOTH, "200 bird species (Caltech-UCSD Birds): 150 seen, 50 unseen; features or images from --root."),
    ("sun", _BOTH, "717 kinds of scenes (SUN Attributes): 645 seen, 72 unseen; features or images from --root."),
    ("sun10", ("SUN10",), "The same with ten unseen classes (Jayaraman & Grauman): 707 seen; from --root."),
    ("awa2", _BOTH, "50 animals (Animals with Attributes 2): 40 seen, 10 unseen; features or images from --root."),
    ("xlsa17", ("own",), "Any folder in the form of the xlsa17 benchmarks: att_splits.mat and a features file."),
):
    _entry = Dataset(_name, _summary, _BENCHMARKS, _splits, True, ("features",), ("images",), fixed={"name": _name})
    DATASETS.add(_name, _entry)


def list_datasets(pattern: str = "*") -> list[str]:
    """Return the names that match a pattern such as ``"num*"``, sorted."""
    return sorted(DATASETS.matching(pattern))


def find_dataset(name: str | Path) -> Dataset:
    """A registered data set, or the user's own data, which have no splits."""
    text = str(name)
    if not is_path(text):
        try:
            return DATASETS[text]
        except PrenError as error:
            hint = "For your own data, give the path of a .npz file or of a folder of photographs."
            raise PrenError(error.code, f"{error} {hint}") from None
    if text.lower().endswith(".npz"):
        return Dataset(text, "arrays of your own", "pren.data.arrays:load_arrays", fixed={"path": text})
    if os.path.lexists(text) and not is_folder(text):
        raise PrenError("data-unknown", f"{text} is neither a .npz file nor a folder: check the path.")
    return Dataset(
        text, "photographs of your own", "pren.data.folder.load:load_folder", photographs=True, fixed={"path": text}
    )


def is_path(name: str | Path) -> bool:
    """Whether a name is a path of the user's own data, existing or not, and not a registered data set."""
    text = str(name)
    return text not in DATASETS and (text.lower().endswith(".npz") or Path(text).name != text or is_folder(text))


def data_root(name: str, root: str | Path | None) -> Path | None:
    """The folder of a data set: the given one or, if the data set needs one, that of `PREN_DATA`."""
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
    """Load a problem and, separately, its answers, None if there are none.

    Args:
        name: One of `list_datasets`, or the path of a ``.npz`` file (see `pren.data.arrays`) or of a folder of
            photographs (see `pren.data.folder.load`).
        root: The folder with the data, for data sets that need one; the environment variable ``PREN_DATA`` by default.
        split: The split; the data set's first one by default.
        setting: "zsl" or "gzsl".
        **options: Options of this data set.

    Raises:
        PrenError: If there is no such data set, split or option, or the data cannot be read.
    """
    dataset = find_dataset(name)
    given: dict[str, Any] = {"setting": setting}
    if dataset.needs_root:
        given["root"] = data_root(dataset.name, root)
        if given["root"] is None:
            raise PrenError("root-missing", f"{name} needs a folder: give root (--root), or set ${ROOT_VARIABLE}.")
    elif root is not None:
        raise PrenError("root-unused", f"{name} takes no root: leave it out.")
    if dataset.splits:
        given["split"] = dataset.splits[0] if split is None else split
    if split is not None and split not in dataset.splits:
        choose = f"choose one of {', '.join(dataset.splits)}" if dataset.splits else "it has none"
        raise PrenError("split-unknown", f"{name} has no split {split!r}: {choose}.")
    return dataset.load(**given, **_checked(dataset, options, taken=set(given)))


def _checked(dataset: Dataset, options: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    """Options converted to the types that the loader declares."""
    loader = dataset.load
    fixed = loader.keywords if isinstance(loader, partial) else {}
    known = [option for option in inspect.signature(loader).parameters if option not in {*taken, *fixed}]
    hints = get_type_hints(loader.func if isinstance(loader, partial) else loader)
    checked = {}
    for option, value in options.items():
        if option == "signatures" and option not in known:  # it only has attributes
            if value != ATTRIBUTES:
                message = f"{dataset.name} has no signatures {value!r}. It has {ATTRIBUTES}."
                raise PrenError("signatures-unknown", message)
            continue
        if option == "hold_out" and option not in known:
            more = ", or with --option seen_test=random a fifth of each" if "seen_test" in known else ""
            own = f"--setting gzsl holds out its own test images of seen classes{more}"
            raise PrenError("hold-out", f"{dataset.name} has no option 'hold_out': {own}.")
        if option not in known:
            message = f"{dataset.name} has no option {option!r}: it has {', '.join(known) or 'none'}."
            raise PrenError("data-option-unknown", message)
        try:
            kind = TypeAdapter(hints.get(option, Any), config=ConfigDict(extra="forbid"))
            checked[option] = kind.validate_python(value)
        except ValidationError as error:
            problems = "; ".join(dict.fromkeys(detail["msg"].lower() for detail in error.errors()))
            raise PrenError("data-option-value", f"{dataset.name}: option {option}={value!r}: {problems}.") from None
    return checked
