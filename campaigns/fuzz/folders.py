"""Mutated run folders under every command that reads one."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from campaigns.fuzz.command import REFUSED, SUCCESS, Result, changes, pren, snapshot
from campaigns.fuzz.damage import JOURNALS, LOCKED, OTHER_DAMAGES, SAID, SPOILS, TENSORS, Damage, Spoil
from campaigns.fuzz.templates import RUNS, Workshop
from pren.images.cache import FACTS_FILE
from pren.review.session import FOLDER

VERBS = (
    *("show", "show as text", "evaluate", "predict", "suggest", "report", "classes", "continue", "resume"),
    *("export", "serve", "review"),
)
TEMPLATES = (*RUNS, "own")
MADE = {"predict": "out.csv", "report": "out.html", "classes": "new", "continue": "new", "export": "out.pt2"}
NOT_KEPT = ("config.yaml", "timings.csv", "manifest.json", "state.json")  # with times in them, or hashes of such


@dataclass(frozen=True)
class Damaged:
    """A run folder, what happened to it, and what it is used for then.

    Attributes:
        run: Which template.
        other: The run that wrong files come from.
        damages: What happened.
        verb: One of `VERBS`.
    """

    run: str
    other: str
    damages: tuple[Damage, ...]
    verb: str


_DAMAGES: SearchStrategy[tuple[Damage, ...]] = st.lists(SPOILS, min_size=1, max_size=2).map(tuple) | st.lists(
    SPOILS | OTHER_DAMAGES, min_size=1, max_size=2
).map(tuple)
_GENERAL = st.builds(Damaged, st.sampled_from(TEMPLATES), st.sampled_from(TEMPLATES), _DAMAGES, st.sampled_from(VERBS))
_DEEP: SearchStrategy[tuple[Damage, ...]] = st.lists(TENSORS | SAID | LOCKED, min_size=1, max_size=2).map(tuple)
_TOLD: SearchStrategy[tuple[Damage, ...]] = st.lists(JOURNALS | SPOILS, min_size=1, max_size=2).map(tuple)
CASES: SearchStrategy[Damaged] = st.one_of(
    _GENERAL,
    _GENERAL,
    # The one case in which everything is read, locks and the state of training included.
    st.builds(Damaged, st.just("interrupted"), st.just("finished"), _DEEP, st.just("resume")),
    st.builds(Damaged, st.sampled_from(TEMPLATES), st.sampled_from(TEMPLATES), _DEEP, st.sampled_from(VERBS)),
    st.builds(Damaged, st.just("own"), st.just("finished"), _TOLD, st.just("review")),
)


def check(workshop: Workshop, case: Damaged) -> str:
    """Damage a copy of the run and use it."""
    place = workshop.fresh()
    run = place / "run"
    shutil.copytree(workshop.template(case.run), run)
    for damage in case.damages:
        damage.apply(run, workshop.template(case.other))
    inputs = (workshop.data, workshop.inputs, workshop.photographs, workshop.template(case.other))
    before, run_before = snapshot(*inputs), snapshot(run)
    result = _use(workshop, case.verb)
    changed = changes(before, snapshot(*inputs))
    assert not changed, f"input files have changed: {changed}"
    touched = [path for path in changes(run_before, snapshot(run)) if Path(path).name != ".lock"]
    if case.verb == "review":
        touched = [path for path in touched if run / FOLDER not in (Path(path), *Path(path).parents)]
    if case.verb != "resume":
        assert not touched, f"{case.verb} has changed the run: {touched}"
    elif result.outcome == REFUSED:
        lost = [path for path in touched if path in run_before and not Path(path).exists()]
        assert not lost, f"a refused resume has removed {lost}: {result.err}"
    # Features are kept where a run's settings say, which can be forged: docs/security.md says so.
    made = {path.name for path in place.iterdir() if not any(path.rglob(FACTS_FILE))} - {"run"}
    assert made == ({MADE[case.verb]} if case.verb in MADE and result.outcome == SUCCESS else set()), f"made {made}"
    if result.outcome == SUCCESS and all(isinstance(damage, Spoil) for damage in case.damages):
        got, wanted = _result(place, case.verb, result), _untouched(workshop, case.run, case.verb)
        assert got == wanted, f"the result of {case.verb} has changed without a word: {_difference(got, wanted)}"
    return result.outcome


def _use(workshop: Workshop, verb: str) -> Result:
    result = pren(
        *{
            "show": ("show", "run", "--json"),
            "show as text": ("show", "run"),
            "evaluate": ("evaluate", "run", "--json"),
            "predict": ("predict", "run", str(workshop.inputs), "--out", "out.csv"),
            "suggest": ("suggest", "run", "--json"),
            "report": ("report", "run", "--out", "out.html"),
            "classes": ("classes", "remove", "run", "a", "--out", "new"),
            "continue": ("fit", "--continue", "run", "--rehearsals", "0", "--no-report", "--out", "new"),
            "resume": ("fit", "--resume", "run", "--json"),
            "export": ("export", "run", "--format", "torch", "--out", "out.pt2"),
            "serve": ("serve", "run", "--port", "0"),
            "review": ("review", "run"),
        }[verb]
    )
    return result._replace(out="") if verb in ("serve", "review") else result  # which has a token in it


def _result(place: Path, verb: str, result: Result) -> dict[str, Any]:
    """All that a command has produced but for times."""
    found: dict[str, Any] = {"standard output": result.out}
    made = place / MADE.get(verb, "run" if verb == "resume" else "")
    for path in [made] if made.is_file() else sorted(made.rglob("*")) if made != place else []:
        if path.is_file() and path.name not in NOT_KEPT:
            found[str(path.relative_to(place))] = path.read_bytes()
        if path.name == "state.json":
            found[str(path.relative_to(place))] = json.loads(path.read_bytes())["history"]
    return found


@cache
def _untouched(workshop: Workshop, run: str, verb: str) -> dict[str, Any]:
    """What the command produces with the template itself."""
    place = workshop.fresh()
    shutil.copytree(workshop.template(run), place / "run")
    result = _use(workshop, verb)
    assert result.outcome == SUCCESS, result.err
    return _result(place, verb, result)


def _difference(got: dict[str, Any], wanted: dict[str, Any]) -> str:
    return ", ".join(sorted(key for key in {*got, *wanted} if got.get(key) != wanted.get(key)))
