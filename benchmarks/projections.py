"""What the paper's projections tell a head that guesses in closed form: ``python -m benchmarks.projections``.

``--signatures`` shows only what is left of the distances between signatures, which needs no images. Otherwise each of
50 heads guesses where the classes of its Z_k lie from P_k a alone, by the Gaussian process of PrEN-Vote, and votes on
each image among Z_k (Eq. 5 to 7). Beside them: the same heads with rows of P_k left out, with as many random
directions, and with all of a. CUB's three validation folds, and draws from its seen classes, 312 attributes; no test
class has a part in it. PREN_DATA says where CUB is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import drawn
from benchmarks.tables import Table
from pren.core.projection import half_subsets, project
from pren.data import load
from pren.methods.class_statistics import class_statistics
from pren.methods.formulas import on_arrays, squared_distances
from pren.methods.gaussian_process import guess_means
from pren.methods.preparation import PREPARATIONS
from pren.problem import Problem

HEADS = 50
ROWS = 70
DRAWN = ("32 + 8", "20 + 10")
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
Directions = Callable[["Case", int], Matrix]


class Case(NamedTuple):
    """A problem, and the heads of the paper for it.

    Attributes:
        signatures: (L, m).
        seen: (L,) which classes are seen.
        means: (L, d) of the images of each class, whitened; of unseen ones to compare with.
        pool: (N, d) whitened.
        labels: (N,) classes of the pool, as rows of the table.
        subsets: (K, L) Z_k.
        projections: (K, h, m) P_k.
        zero: (K, h) which of their rows belong to the eigenvalue zero.
    """

    signatures: Matrix
    seen: Mask
    means: Matrix
    pool: Matrix
    labels: NDArray[np.int64]
    subsets: Mask
    projections: Matrix
    zero: Mask


def cases() -> Iterator[tuple[str, Case]]:
    """CUB's folds, then draws of two sizes."""
    for fold in (1, 2, 3):
        problem, answers = load("cub", split="PS", features="efflite0.mat", fold=fold)
        assert answers is not None
        yield "folds, 100 + 50", _case(problem, answers.labels)
    for name in DRAWN:
        for problem, labels in drawn.problems(drawn.KINDS[name]):
            yield f"draws, {name}", _case(problem, labels)


def _case(problem: Problem, labels: NDArray[np.int64]) -> Case:
    table = problem.classes
    preparation = PREPARATIONS["whitened"].fit(problem)
    train, pool = preparation.of(problem.train), preparation.of(problem.pool)
    means, _ = class_statistics(train, problem.labels, len(table))
    for row in np.flatnonzero(table.unseen):
        means[row] = pool[labels == row].mean(axis=0)
    subsets = half_subsets(table.seen, HEADS, 0)
    h = min(ROWS, table.signatures.shape[1] - 1)
    found = project(table.signatures, table.seen, subsets, h, "null", 0)
    assert found.projections is not None
    assert found.informative is not None
    return Case(table.signatures, table.seen, means, pool, labels, found.subsets, found.projections, ~found.informative)


def _everything(case: Case, head: int) -> Matrix:
    return np.eye(case.signatures.shape[1])


def _random(case: Case, head: int) -> Matrix:
    rows, m = case.projections.shape[1:]
    return np.linalg.qr(np.random.default_rng([head, 31]).standard_normal((m, rows)))[0].T


WAYS: dict[str, Directions] = {
    "all of a": _everything,
    "P_k, as printed": lambda case, head: case.projections[head],
    "P_k, only rows of positive eigenvalues": lambda case, head: case.projections[head][~case.zero[head]],
    "P_k, only rows of the eigenvalue zero": lambda case, head: case.projections[head][case.zero[head]],
    "as many random directions": _random,
}


class Figures(NamedTuple):
    """What heads know, as shares; means over heads.

    Attributes:
        own: Of the squared length of Z_k's signatures, what is left.
        apart: Of the squared distances between signatures of Z_k.
        error: Squared error of the guessed means of Z_k, of their spread.
        alone: Images of Z_k that a head labels right among Z_k.
        voted: Images of the pool that the vote of all heads labels right.
    """

    own: float
    apart: float
    error: float
    alone: float
    voted: float


def figures(case: Case, directions: Directions) -> Figures:
    """All heads of a case, with some directions of the signatures."""
    votes, found = np.zeros((len(case.pool), len(case.signatures))), []
    for head, subset in enumerate(case.subsets):
        P = directions(case, head)
        own = np.flatnonzero(subset)
        a, projected = case.signatures[own], case.signatures @ P.T
        guess = guess_means(projected[case.seen], case.means[case.seen], projected[own]).means
        right = case.means[own]
        best = own[on_arrays(squared_distances, case.pool, guess).argmin(axis=1)]
        votes[np.arange(len(best)), best] += 1
        mine = subset[case.labels]
        found.append(
            (
                (projected[own] ** 2).sum() / (a**2).sum(),
                _spread(projected[own]) / _spread(a),
                ((guess - right) ** 2).sum() / _spread(right),
                (best == case.labels)[mine].mean(),
            )
        )
    shares = votes / np.maximum(case.subsets.sum(axis=0), 1)
    own_share, apart, error, alone = np.mean(found, axis=0).tolist()
    return Figures(own_share, apart, error, alone, float((shares.argmax(axis=1) == case.labels).mean()))


def _spread(rows: Matrix) -> float:
    return float(((rows - rows.mean(axis=0)) ** 2).sum())


def signatures_left() -> Table:
    """What rows of P_k keep of the squared distances between signatures, on CUB's folds; means over heads."""
    header = ["fold", "rows of P_k", "how many", "classes of Z_k", "other unseen ones", "seen ones"]
    table = Table("What is left of the distances between signatures, per cent", header)
    for fold in (1, 2, 3):
        classes = load("cub", split="PS", features="efflite0.mat", fold=fold)[0].classes
        a, seen = classes.signatures, classes.seen
        found = project(a, seen, half_subsets(seen, HEADS, 0), ROWS, "null", 0)
        assert found.projections is not None
        assert found.informative is not None
        positive = [P[kept] for P, kept in zip(found.projections, found.informative, strict=True)]
        rows = {
            "positive eigenvalues": positive,
            "eigenvalue zero": [P[~kept] for P, kept in zip(found.projections, found.informative, strict=True)],
            "positive eigenvalues, of the next head": [*positive[1:], positive[0]],
        }
        for name, matrices in rows.items():
            left = [
                [_spread(a[who] @ P.T) / _spread(a[who]) for who in (own, ~seen & ~own, seen)]
                for P, own in zip(matrices, found.subsets, strict=True)
            ]
            count = np.mean([len(P) for P in matrices])
            table.rows.append([str(fold), name, f"{count:.0f}", *(f"{100 * s:.1f}" for s in np.mean(left, axis=0))])
    return table


def run() -> Table:
    """A row for each kind of problems and each way."""
    taken: dict[tuple[str, str], list[Figures]] = {}
    for kind, case in cases():
        for way, directions in WAYS.items():
            taken.setdefault((kind, way), []).append(figures(case, directions))
    header = [
        "data",
        "a head knows",
        "of Z_k's length",
        "of its distances",
        "error of guesses",
        "one head",
        "vote of 50",
    ]
    table = Table("What projections leave to a head in closed form, per cent", header)
    for (kind, way), rows in taken.items():
        table.rows.append([kind, way, *(f"{100 * value:.1f}" for value in np.mean(rows, axis=0))])
    return table


if __name__ == "__main__":
    print((signatures_left() if sys.argv[1:] == ["--signatures"] else run()).markdown())
