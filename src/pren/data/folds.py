"""Validation folds: problems made of a problem's seen classes only, to choose parameters with.

A fold has no test data: no input of the pool is read, and its class table has neither the unseen classes nor their
signatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from pren.data.benchmarks.partition import DATA_SEED, Indices, random_share, shuffled
from pren.data.describe import scaled_anew
from pren.foundation.errors import PrenError
from pren.foundation.seeds import stream
from pren.problem import Answers, ClassTable, Problem, Setting

FOLDS = 3  # as in the benchmarks
FEWEST = 2  # held-out classes: with only one, every prediction would be right
LEAVES = 3  # at most one in so many seen classes is held out in a draw


def class_folds(problem: Problem) -> list[tuple[Problem, Answers]]:
    """Divide the labelled inputs by classes: in each fold some of the seen classes count as unseen.

    Every seen class counts as unseen in exactly one fold. The folds depend neither on a seed nor on the order of the
    classes.

    Args:
        problem: The problem to choose parameters for. In "gzsl" the pool of a fold also holds a fifth of the inputs
            of each class that stays seen.

    Raises:
        PrenError: If there are too few seen classes.
    """
    by_name = _seen_by_name(problem)
    drawn = stream(DATA_SEED, "class folds").permutation(by_name)
    parts = np.array_split(drawn, min(FOLDS, len(by_name) // FEWEST))
    return [_fold(problem, part, number) for number, part in enumerate(parts, start=1)]


def held_out_classes(problem: Problem, draws: int) -> Iterator[tuple[Problem, Answers]]:
    """Draw seen classes that count as unseen: as many as there are unseen ones, if enough seen ones remain.

    Every class is drawn once before any is drawn again; where there are no more than `draws` different draws, all come
    before one comes again. As in `class_folds`, the draws do not depend on a seed.

    Args:
        problem: As for `class_folds`.
        draws: How many.

    Raises:
        PrenError: If there are too few seen classes.
    """
    by_name, rng = _seen_by_name(problem), stream(DATA_SEED, "held out")
    choose = _each_draw if different_draws(problem) <= draws else _some_draws
    for number, chosen in zip(range(1, draws + 1), choose(by_name, _how_many(problem), rng), strict=False):
        yield _fold(problem, np.sort(chosen), number)


def different_draws(problem: Problem) -> int:
    """How many different draws of `held_out_classes` there are."""
    return comb(int(problem.classes.seen.sum()), _how_many(problem))


def _how_many(problem: Problem) -> int:
    """How many seen classes are held out in a draw."""
    return max(FEWEST, min(int(problem.classes.unseen.sum()), int(problem.classes.seen.sum()) // LEAVES))


def _some_draws(classes: Indices, count: int, rng: np.random.Generator) -> Iterator[Indices]:
    """Random draws without end; every class is drawn once before any is drawn again."""
    waiting = classes[:0]
    while True:
        if len(waiting) < count:
            again = rng.permutation(classes)
            waiting = np.concatenate([waiting, again[~np.isin(again, waiting)]])
        yield waiting[:count]
        waiting = waiting[count:]


def _each_draw(classes: Indices, count: int, rng: np.random.Generator) -> Iterator[Indices]:
    """All draws, again and again; next comes one whose classes were drawn least."""
    every = rng.permutation(list(combinations(range(len(classes)), count)))
    left, drawn = every, np.zeros(len(classes))
    while True:
        place = int(drawn[left].sum(axis=1).argmin())
        drawn[left[place]] += 1
        yield classes[left[place]]
        left = np.delete(left, place, axis=0) if len(left) > 1 else every


def check_can_hold_out(problem: Problem) -> None:
    """Raise a `PrenError` if there are too few seen classes to hold some out."""
    if int(problem.classes.seen.sum()) < 2 * FEWEST:
        raise PrenError("seen-too-few", f"No seen class can be held out: {how_to_rehearse(problem.classes)}.")


def how_to_rehearse(classes: ClassTable) -> str:
    """What to do for a forecast where there is none, to write in a message."""
    if (seen := int(classes.seen.sum())) >= 2 * FEWEST:
        return "fit with --rehearsals 10"
    return f"add labelled inputs of other classes ({2 * FEWEST} classes with labels are needed, and there are {seen})"


def _seen_by_name(problem: Problem) -> Indices:
    """The seen classes in the order of their names."""
    check_can_hold_out(problem)
    seen = np.flatnonzero(problem.classes.seen)
    return seen[np.argsort(np.array(problem.classes.names)[seen], kind="stable")]


def _fold(problem: Problem, unseen: Indices, number: int) -> tuple[Problem, Answers]:
    table, labels = problem.classes, problem.labels
    is_unseen = np.isin(labels, unseen)
    usable, pool = np.flatnonzero(~is_unseen), np.flatnonzero(is_unseen)
    if problem.setting == "gzsl":
        order = np.argsort(np.array(table.names), kind="stable")
        held_out = random_share(np.argsort(order)[labels], usable)  # draws by class number: use the rank of the name
        usable, pool = np.setdiff1d(usable, held_out), np.concatenate([pool, held_out])
    pool = shuffled(pool)
    inputs = problem.train.relearned(usable)  # features must not be learned from held-out classes
    rows = np.flatnonzero(table.seen)  # the classes of the fold
    seen = ~np.isin(rows, unseen)
    fold = replace(
        problem,
        train=inputs.select(usable),
        labels=np.searchsorted(rows, labels[usable]),
        pool=inputs.select(pool),
        given=None,
        classes=ClassTable(
            names=tuple(table.names[row] for row in rows),
            signatures=scaled_anew(table.signatures[rows], problem.source.get("signatures", {}), seen),
            seen=seen,
            normalised=table.normalised,
        ),
        source={**problem.source, "class_fold": number},
    )
    return fold, Answers(np.searchsorted(rows, labels[pool]))


def held_out(labels: Indices, names: Sequence[str], share: float | None, setting: Setting) -> Indices:
    """The places of the labelled inputs to hold out, ascending; always the same, for any order of the classes.

    Args:
        labels: (N,) the classes of the labelled inputs.
        names: (L,) the names of the classes.
        share: Of each class's inputs, at least one of which stays; None for no input.
        setting: Must be "gzsl"; in "zsl" no seen class is evaluated.

    Raises:
        PrenError: If the share or the setting is not valid.
    """
    if share is None:
        return np.empty(0, dtype=np.int64)
    if not 0 < share < 1:
        raise PrenError("hold-out", f"hold_out={share} is not between 0 and 1: 0.2 holds out a fifth of each class.")
    if setting != "gzsl":
        raise PrenError("hold-out", "hold_out is for seen classes, which 'zsl' does not evaluate: add --setting gzsl.")
    rank = np.argsort(np.argsort(np.array(names), kind="stable"))
    return np.sort(random_share(rank[labels], np.arange(len(labels)), share))
