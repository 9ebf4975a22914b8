"""Whether two finished runs are the same, bit by bit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml
from safetensors import SafetensorError, safe_open

# These differ between any two runs: seconds, checksums over seconds, and the lock.
NOT_COMPARABLE = {"timings.csv", "manifest.json", ".lock"}
STARTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
SHOWN = 3  # of the names or lines that differ in a file


def differences(reference: Path, run: Path) -> list[str]:
    """The differences between a run and its reference.

    Args:
        reference: The folder of an uninterrupted run.
        run: The folder of a run with the same settings.

    Returns:
        One line for every file that differs, is missing or should not be there; none if the runs are the same.
    """
    ours, theirs = _files(reference), _files(run)
    found = [f"{name} is missing" for name in sorted(ours - theirs)]
    found += [f"{name} should not be there" for name in sorted(theirs - ours)]
    for name in sorted(ours & theirs):
        if Path(name).name not in NOT_COMPARABLE:
            found += [f"{name}: {what}" for what in _compare(reference / name, run / name)]
    return found


def _files(folder: Path) -> set[str]:
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    # Whether these are left behind is for the run to decide; only timings.csv is part of every run.
    return {name for name in names if Path(name).name not in NOT_COMPARABLE or name == "timings.csv"}


def _compare(reference: Path, path: Path) -> list[str]:
    before, after = reference.read_bytes(), path.read_bytes()
    if before == after:
        return []
    special = _SPECIAL.get(path.name) or _SPECIAL.get(path.suffix) or _lines
    try:
        return special(reference, path)
    except (OSError, ValueError, LookupError, TypeError, SafetensorError, yaml.YAMLError) as error:
        return [f"cannot be read: {error}"]


def _lines(reference: Path, path: Path) -> list[str]:
    """The first lines that differ."""
    return _different(*(file.read_text(encoding="utf-8") for file in (reference, path)))


def _report(reference: Path, path: Path) -> list[str]:
    """The first lines that differ, but for where the run is, what is kept beside it, and when it was started."""
    texts = (file.read_text(encoding="utf-8").replace(str(file.parent.parent), "PLACE") for file in (reference, path))
    return _different(*(STARTED.sub("THEN", text).replace("<", "\n<") for text in texts))


def _different(before: str, after: str) -> list[str]:
    texts = (text.split("\n") for text in (before, after))
    pairs = [(i, *pair) for i, pair in enumerate(zip_longest(*texts), 1) if pair[0] != pair[1]]
    return [f"line {number} is {there!r} and not {here!r}" for number, here, there in pairs[:SHOWN]]


def _tensors(reference: Path, path: Path) -> list[str]:
    """The tensors that differ in a file whose bytes do."""
    here, there = _read_tensors(reference), _read_tensors(path)
    names = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
    if not names:
        return ["the tensors are the same, but not the way they are written"]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [f"{', '.join(names[:SHOWN])}{more} differ"]


def _read_tensors(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
        content: dict[str, Any] = {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()}
        return {**content, "the header": file.metadata()}


def _state(reference: Path, path: Path) -> list[str]:
    """Everything but the seconds per round."""
    here, there = (json.loads(file.read_text(encoding="utf-8")) for file in (reference, path))
    return _keys(here, there, leave_out="timings")


def _config(reference: Path, path: Path) -> list[str]:
    """Everything but the record of when, where and how the run was started."""
    here, there = (yaml.safe_load(file.read_text(encoding="utf-8")) for file in (reference, path))
    return _keys(here, there, leave_out="record")


def _keys(here: dict[str, Any], there: dict[str, Any], leave_out: str) -> list[str]:
    found = [f"{key} is missing" for key in here.keys() - there.keys()]
    found += [f"{key} should not be there" for key in there.keys() - here.keys()]
    common = sorted((here.keys() & there.keys()) - {leave_out})
    return found + [f"{key} differs" for key in common if here[key] != there[key]]


_SPECIAL: dict[str, Callable[[Path, Path], list[str]]] = {
    ".safetensors": _tensors,
    "state.json": _state,
    "config.yaml": _config,
    "report.html": _report,
}
