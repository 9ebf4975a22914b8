"""Validation folds: problems made of a problem's seen classes alone, to choose parameters on.

Nothing of the test can get in: no image of the pool is read, and the unseen classes, their signatures included, are not
in a fold's class table.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pren.data.partition import DATA_SEED, Indices, random_share, shuffled
from pren.errors import PrenError
from pren.problem import Answers, ClassTable, Problem
from pren.seeds import stream
from pren.signatures import scaled_anew

FOLDS = 3  # as many as the benchmarks have
FEWEST = 2  # classes that play the unseen ones: with one, every answer would be right


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
    seen = np.flatnonzero(problem.classes.seen)
    count = min(FOLDS, len(seen) // FEWEST)
    if count < 2:
        raise PrenError(f"{len(seen)} seen classes are too few to hold some out: at least {2 * FEWEST} are needed.")
    by_name = seen[np.argsort(np.array(problem.classes.names)[seen], kind="stable")]
    drawn = stream(DATA_SEED, "class folds").permutation(by_name)
    return [_fold(problem, part, number) for number, part in enumerate(np.array_split(drawn, count), start=1)]


def _fold(problem: Problem, unseen: Indices, number: int) -> tuple[Problem, Answers]:
    table, labels = problem.classes, problem.labels
    is_unseen = np.isin(labels, unseen)
    usable, pool = np.flatnonzero(~is_unseen), np.flatnonzero(is_unseen)
    if problem.setting == "gzsl":
        order = np.argsort(np.array(table.names), kind="stable")
        held_out = random_share(np.argsort(order)[labels], usable)  # which draws by number: that of the name
        usable, pool = np.setdiff1d(usable, held_out), np.concatenate([pool, held_out])
    pool = shuffled(pool)
    rows = np.flatnonzero(table.seen)  # of the classes that there are in the fold
    seen = ~np.isin(rows, unseen)
    fold = replace(
        problem,
        train=problem.train.select(usable),
        labels=np.searchsorted(rows, labels[usable]),
        pool=problem.train.select(pool),
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
