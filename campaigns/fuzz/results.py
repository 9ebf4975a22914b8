"""Mutated results of a reproduction, under the commands that read them."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from campaigns.fuzz.command import changes, pren, snapshot
from campaigns.fuzz.damage import CANNOT_FORGE, REPLACED, SPOILS, Replace, Spoil
from campaigns.fuzz.mutations import JSON_EDITS, PLACES, StructureEdit
from campaigns.fuzz.templates import Workshop
from pren.problem import Answers, Problem
from pren.research.folder import CELLS
from pren.research.reproduction import plan
from pren.runs.opening import open_problem
from pren.store.config import RunConfig

VERBS = {
    "reproduce": ("reproduce", "zsl", "--stored", "--seeds", "1", "--out", "store"),
    "cells": ("reproduce", "zsl", "--stored", "--seeds", "1", "--out", "new", "--cells", "store"),
    "report": ("report", "store", "--out", "new.html"),
}


@dataclass(frozen=True)
class Forge:
    """What a result says, changed."""

    file: int
    edit: StructureEdit

    def apply(self, store: Path, other: Path) -> None:
        """Change a file; `other` is not touched."""
        files = [path for path in sorted(store.rglob("*.json")) if path.is_file() and not path.is_symlink()]
        with suppress(*CANNOT_FORGE):
            path = files[self.file % len(files)]
            path.write_text(json.dumps(self.edit.apply(json.loads(path.read_bytes()))))


@dataclass(frozen=True)
class Stored:
    """What happened to a folder of results, and what it is used for then."""

    damages: tuple[Forge | Spoil | Replace, ...]
    verb: str


CASES: SearchStrategy[Stored] = st.builds(
    Stored,
    st.lists(st.builds(Forge, PLACES, JSON_EDITS) | SPOILS | REPLACED, max_size=2).map(tuple),
    st.sampled_from(list(VERBS)),
)


def check(workshop: Workshop, case: Stored) -> str:
    """Damage a copy of the results and use them."""
    place = workshop.fresh()
    store = place / "store"
    shutil.copytree(workshop.path / "store", store)
    for damage in case.damages:
        damage.apply(store, workshop.path / "store")
    before = snapshot(store, workshop.path / "store")
    with mock.patch.object(plan, "open_problem", lambda config: _opened(config.model_dump_json())):
        result = pren(*VERBS[case.verb])
    changed = [Path(path) for path in changes(before, snapshot(store, workshop.path / "store"))]
    if case.verb == "reproduce":  # which writes its tables there
        changed = [path for path in changed if path.parent.name == CELLS]
    assert {path.name for path in changed} <= {".lock"}, f"results have changed: {changed}"
    return result.outcome


@cache
def _opened(config: str) -> tuple[Problem, Answers | None]:
    """Data that take a second to draw, once for all cases."""
    return open_problem(RunConfig.model_validate_json(config))
