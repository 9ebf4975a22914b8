"""Validation folds: problems made of a problem's seen classes alone, to choose parameters on.

Nothing of the test can get in: no image of the pool is read, and the unseen classes, their signatures included, are not
in a fold's class table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pren.data.benchmarks.partition import DATA_SEED, Indices, random_share, shuffled
from pren.describe import scaled_anew
from pren.foundation.errors import PrenError
from pren.foundation.seeds import stream
from pren.problem import Answers, ClassTable, Problem

FOLDS = 3  # as many as the benchmarks have
FEWEST = 2  # classes that play the unseen ones: with one, every answer would be right
LEAVES = 3  # of the seen classes, at most one in so many is held out in a draw


def class_folds(problem: Problem) -> list[tuple[Problem, Answers]]:
    """Divide the labelled images by classes: in each fold some of the seen classes play the unseen ones.

    Every seen class plays an unseen one in exactly one fold. Which, and which images are held out, is part of the data:
    no seed moves it, nor does the order of the classes.

    Args:
        problem: The problem to choose parameters for. In "gzsl" the pool of a fold also holds a fifth of the images
            of each class that stays seen.

    Raises:
        PrenError: If there are too few seen classes.
    """
    by_name = _seen_by_name(problem)
    drawn = stream(DATA_SEED, "class folds").permutation(by_name)
    parts = np.array_split(drawn, min(FOLDS, len(by_name) // FEWEST))
    return [_fold(problem, part, number) for number, part in enumerate(parts, start=1)]


def held_out_classes(problem: Problem, draws: int) -> Iterator[tuple[Problem, Answers]]:
    """Let seen classes play the unseen ones: as many as there are of these, where that leaves enough seen ones.

    Every class has its turn before any has a second one. As with `class_folds`, the draws are part of the data.

    Args:
        problem: As for `class_folds`.
        draws: How many.

    Raises:
        PrenError: If there are too few seen classes.
    """
    by_name = _seen_by_name(problem)
    count = max(FEWEST, min(int(problem.classes.unseen.sum()), len(by_name) // LEAVES))
    rng, waiting = stream(DATA_SEED, "held out"), by_name[:0]
    for number in range(1, draws + 1):
        if len(waiting) < count:
            again = rng.permutation(by_name)
            waiting = np.concatenate([waiting, again[~np.isin(again, waiting)]])
        chosen, waiting = waiting[:count], waiting[count:]
        yield _fold(problem, np.sort(chosen), number)


def check_can_hold_out(problem: Problem) -> None:
    """Raise a `PrenError` if there are too few seen classes to hold some out."""
    seen = int(problem.classes.seen.sum())
    if seen < 2 * FEWEST:
        raise PrenError(
            "seen-too-few", f"{seen} seen classes are too few to hold some out: at least {2 * FEWEST} are needed."
        )


def _seen_by_name(problem: Problem) -> Indices:
    """The seen classes in an order that theirs in the table does not matter to."""
    check_can_hold_out(problem)
    seen = np.flatnonzero(problem.classes.seen)
    return seen[np.argsort(np.array(problem.classes.names)[seen], kind="stable")]


def _fold(problem: Problem, unseen: Indices, number: int) -> tuple[Problem, Answers]:
    table, labels = problem.classes, problem.labels
    is_unseen = np.isin(labels, unseen)
    usable, pool = np.flatnonzero(~is_unseen), np.flatnonzero(is_unseen)
    if problem.setting == "gzsl":
        order = np.argsort(np.array(table.names), kind="stable")
        held_out = random_share(np.argsort(order)[labels], usable)  # which draws by number: that of the name
        usable, pool = np.setdiff1d(usable, held_out), np.concatenate([pool, held_out])
    pool = shuffled(pool)
    inputs = problem.train.relearned(usable)  # what they were learned from must not give the held-out classes away
    rows = np.flatnonzero(table.seen)  # of the classes that there are in the fold
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
