"""Any command line: verbs, options and arguments at random, many of them hostile."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from campaigns.fuzz.command import changes, pren, snapshot
from campaigns.fuzz.configs import ARGUMENTS
from campaigns.fuzz.templates import Workshop
from pren.review.session import FOLDER
from pren.store.folder import REPORT_FILE

# Not `demo` and no valid `tune`, `compare` or `reproduce`: they take minutes, and start processes.
VERBS: tuple[tuple[str, ...], ...] = (
    *(("fit",), ("evaluate",), ("predict",), ("show",), ("suggest",), ("forecast",), ("extract",)),
    *(("report",), ("classes",), ("classes", "add", "{run}"), ("classes", "remove", "{own}"), ("classes", "list")),
    *(("review", "{own}"), ("serve",), ("export",), ("reproduce", "datasets"), ("reproduce", "zsl", "--stored")),
    *(("list",), ("data",), ("data", "check"), ("data", "show"), ("compare", "nowhere")),
    ("tune", "nowhere", "--method", "eszsl"),
    *((), ("",), ("fi",), ("--version",), ("-x",)),
)
OPTIONS = (
    *("--help", "--json", "--out", "--method", "--set", "--option", "--setting", "--seed", "--split", "--root"),
    *("--cache", "--weights", "--backbone", "--geometry", "--frozen", "--features-file", "--signatures", "--hold-out"),
    *("--rehearsals", "--min-accuracy", "--count", "--top", "--among", "--confused", "--threads", "--accelerator"),
    *("--config", "--resume", "--data", "--strict", "--workers", "--trials", "--methods", "--seeds", "--start", "--"),
    *("--continue", "--no-report", "--signature", "--description", "--finetune", "--finetune-epochs", "--format"),
    *("--from-features", "--host", "--port", "--name", "--no-token", "--no-browser", "--max-bytes", "--max-inputs"),
)
PLACES = (
    "{data}",
    "{inputs}",
    "{run}",
    "{own}",
    "{folder}",
    "{folder}/unlabelled",
    "nowhere",
    ".",
    "/",
    "/dev/null",
    "-",
)
FIRST = ("--rehearsals", "0", "--method", "eszsl")


@dataclass(frozen=True)
class Command:
    """A command line; in its arguments {data}, {inputs}, {run}, {own} and {folder} stand for what there is."""

    verb: tuple[str, ...]
    arguments: tuple[str, ...]


_WORD = st.sampled_from(PLACES) | st.sampled_from(OPTIONS) | ARGUMENTS
_PAIR = st.tuples(st.sampled_from(OPTIONS), ARGUMENTS | st.sampled_from(PLACES))
CASES: SearchStrategy[Command] = st.builds(
    Command,
    st.sampled_from(VERBS),
    st.tuples(
        st.lists(_WORD, max_size=3).map(tuple), st.lists(_PAIR, max_size=2).map(lambda pairs: sum(pairs, ()))
    ).map(lambda parts: parts[0] + parts[1]),
)


def check(workshop: Workshop, case: Command) -> str:
    """Run it."""
    place = workshop.fresh()
    for name in ("finished", "own"):  # copies: a report is written into its run, a changed model beside it
        shutil.copytree(workshop.template(name), place / name)
    there = {
        "{data}": str(workshop.data),
        "{inputs}": str(workshop.inputs),
        "{run}": "finished",
        "{own}": "own",
        "{folder}": str(workshop.photographs),
    }
    arguments = [*case.verb, *(FIRST if case.verb == ("fit",) else ()), *case.arguments]
    for name, path in there.items():
        arguments = [argument.replace(name, path) for argument in arguments]
    inputs = (workshop.data, workshop.inputs, workshop.photographs, place / "finished", place / "own")
    before = snapshot(*inputs)
    result = pren(*arguments, may_report=True)
    own = {REPORT_FILE, FOLDER}  # what a report or a review writes into its run
    changed = [path for path in changes(before, snapshot(*inputs)) if own.isdisjoint(Path(path).parts)]
    assert not changed, f"input files have changed: {changed}"
    return result.outcome
