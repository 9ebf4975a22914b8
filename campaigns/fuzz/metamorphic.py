"""The same question asked in another way has the same answer: other names, another order, a doubled pool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import pren
from campaigns.fuzz.command import SUCCESS
from campaigns.fuzz.templates import Workshop
from pren.problem import Problem
from pren.problem.copies import twins_in
from pren.problem.inputs import ArrayInputs

METHODS: dict[str, dict[str, Any]] = {"pren-vote": {"heads": 8}, "pren-pool": {}, "eszsl": {}, "ridge-s2v": {}}
CHANGES = ("rename", "reorder", "rotate", "double", "rescale", "drop")
OF_DIRECTIONS = ("pren-vote", "pren-pool")  # the others look at lengths, too


@dataclass(frozen=True)
class Case:
    """A problem, a method, and how the same is asked again.

    Attributes:
        seed: What the problem is drawn from.
        change: See `CHANGES`.
        method: See `METHODS`.
        setting: "zsl" or "gzsl".
        seen: How many seen classes.
        unseen: How many unseen ones.
    """

    seed: int
    change: str
    method: str
    setting: Any
    seen: int
    unseen: int


CASES = st.builds(
    Case,
    st.integers(0, 1 << 30),
    st.sampled_from(CHANGES),
    st.sampled_from(sorted(METHODS)),
    st.sampled_from(["zsl", "gzsl"]),
    st.integers(5, 9),
    st.integers(2, 4),
)


def check(workshop: Workshop, case: Case) -> str:
    """Ask twice and compare labels and, where the draws must be the same, the forecast."""
    problem, rng = _drawn(case), np.random.default_rng(case.seed + 1)
    # Which of several near copies stands for all depends on their values.
    if case.change == "rescale" and (case.method not in OF_DIRECTIONS or _has_copies(problem)):
        case = replace(case, change="rotate")
    if case.change == "drop":  # with γ from rehearsals, or a pool that is learned from, all classes matter
        case = replace(case, method="eszsl")
    # Other values are another order of the inputs, of which rehearsals hold out others.
    rehearsals = 0 if case.change in ("drop", "rescale") else 2
    labels, forecast = _answer(problem, case, rehearsals)
    other, places = _changed(problem, case.change, rng)
    again, forecast_again = _answer(other, case, rehearsals)
    meant = dict(zip(map(bytes, other.classes.signatures), other.classes.names, strict=True))
    own = dict(zip(problem.classes.names, map(bytes, problem.classes.signatures), strict=True))
    for place, label in zip(places, again, strict=True):
        before = own[labels[place]]
        if before not in meant:  # its class was dropped
            continue
        assert label == meant[before], f"{case}: input {place} was {labels[place]!r} and is {label!r}"
    assert forecast == forecast_again, f"{case}: {forecast} and {forecast_again}"
    return SUCCESS


def _has_copies(problem: Problem) -> bool:
    return bool((twins_in(problem) != np.arange(len(problem.pool))).any())


def _answer(problem: Problem, case: Case, rehearsals: int) -> tuple[list[str], Any]:
    options = {"rehearsals": rehearsals, "report": False, **METHODS[case.method]}
    result = pren.fit(problem, method=case.method, **options)
    return [str(name) for name in result.labels.labels], result.forecast


def _drawn(case: Case) -> Problem:
    """Classes that lie where their signatures say, more or less; inputs of many features, none near another."""
    rng, L, d = np.random.default_rng(case.seed), case.seen + case.unseen, 24
    signatures = rng.random((L, 5))
    centres = signatures @ rng.normal(size=(5, d)) + rng.uniform(0, 1.5) * rng.normal(size=(L, d))
    labels = np.repeat(np.arange(case.seen), 4)
    hidden = rng.permutation(np.repeat(np.arange(0 if case.setting == "gzsl" else case.seen, L), 4))
    train, pool = (centres[rows] + rng.uniform(0.3, 1.5) * rng.normal(size=(len(rows), d)) for rows in (labels, hidden))
    names = [f"class {place}" for place in range(L)]
    return Problem.from_arrays(
        train.astype("f4"), [names[k] for k in labels], signatures, pool.astype("f4"), names, setting=case.setting
    )


def _changed(problem: Problem, change: str, rng: np.random.Generator) -> tuple[Problem, NDArray[np.int64]]:
    """The problem asked in another way, and which input of the first pool each of its inputs is."""
    table, pool, train = problem.classes, _rows(problem.pool), _rows(problem.train)
    places = np.arange(len(pool))
    if change == "rename":
        names = tuple(f"{rng.integers(1 << 40):x}" for _ in table.names)
        return replace(problem, classes=replace(table, names=names)), places
    if change == "reorder":
        rows, inputs, places = (rng.permutation(count) for count in (len(table), len(train), len(pool)))
        return _with_rows(problem, rows, train[inputs], problem.labels[inputs], pool[places]), places
    if change == "drop":
        rows = np.delete(np.arange(len(table)), rng.choice(np.flatnonzero(table.unseen)))
        return _with_rows(problem, rows, train, problem.labels, pool), places
    if change == "rescale":  # a power of two does not round
        return replace(problem, train=ArrayInputs(8 * train), pool=ArrayInputs(8 * pool)), places
    places = np.roll(places, rng.integers(len(pool))) if change == "rotate" else np.tile(places, 2)
    return replace(problem, pool=ArrayInputs(pool[places])), places


def _with_rows(
    problem: Problem, rows: NDArray[np.int64], train: NDArray[Any], labels: NDArray[np.int64], pool: NDArray[Any]
) -> Problem:
    """The problem with some rows of its class table, in their order."""
    table = problem.classes
    names = tuple(table.names[row] for row in rows)
    kept = replace(table, names=names, signatures=table.signatures[rows], seen=table.seen[rows])
    new = np.full(len(table), -1)
    new[rows] = np.arange(len(rows))
    return replace(problem, train=ArrayInputs(train), labels=new[labels], pool=ArrayInputs(pool), classes=kept)


def _rows(inputs: Any) -> NDArray[Any]:
    found: NDArray[Any] = inputs[np.arange(len(inputs))].numpy()
    return found
