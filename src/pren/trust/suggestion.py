"""Which inputs of a pool a person should label next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics.pairwise import euclidean_distances

from pren.methods.preparation import Matrix

MOST_COMPARED = 5_000  # inputs at once
NEIGHBOURS = 10  # the distance of this neighbour is the unit
NEAR = 0.5  # h, in that unit squared

Places = NDArray[np.int64]


def suggest(
    features: Matrix, doubt: Matrix, count: int, given: Places | None = None, among: Places | None = None
) -> Places:
    """Choose the inputs whose labels help most: doubtful ones with other doubtful ones near them.

    Greedy facility location: max Σ_i w_i max_s k(x_i, x_s) over the chosen inputs s. w is the rank of an input's doubt,
    so doubt may have any unit; k(x, y) = exp(-‖x - y‖² / h). A pool that is too large is thinned to every second input,
    or every third, and so on.

    Args:
        features: (N, d) in which inputs of a class are near each other.
        doubt: (N,) larger is less sure.
        count: The most to choose.
        given: (n,) places of inputs that already have a label, and count as chosen.
        among: (m,) places of inputs to choose from, rising; all if None.

    Returns:
        (count,) places, best first.
    """
    given = np.empty(0, dtype=np.int64) if given is None else given
    left = np.setdiff1d(np.arange(len(features)) if among is None else among, given)
    left = left[:: -(-len(left) // MOST_COMPARED) or 1]
    if not len(left):
        return left
    X, labelled = features[left], features[given]
    # A power of two does not round; squares of large features would overflow float32.
    size = -np.frexp(max(np.abs(X).max(initial=0.0), np.abs(labelled).max(initial=0.0)))[1]
    X, labelled = np.ldexp(X, size), np.ldexp(labelled, size)
    distances = euclidean_distances(X, squared=True).astype(np.float32)
    h = _near(distances)
    covered = np.zeros(len(left))
    for start in range(0, len(given), MOST_COMPARED):
        nearest = euclidean_distances(X, labelled[start : start + MOST_COMPARED], squared=True).min(axis=1)
        covered = np.maximum(covered, np.exp(-nearest / h))
    kernel = np.exp(np.divide(distances, -h, out=distances), out=distances)
    return left[_greedy(kernel, rankdata(doubt[left]), covered, count)]


def _near(distances: NDArray[np.float32]) -> float:
    """h, from the squared distances (n, n) of inputs; 1 where most are equal."""
    neighbour = min(NEIGHBOURS, len(distances) - 1)
    far = [np.partition(row, neighbour)[neighbour] for row in distances]
    return NEAR * float(np.median(far)) or 1.0


def _greedy(kernel: NDArray[np.float32], weights: Matrix, covered: Matrix, count: int) -> Places:
    """Choose what gains most, one by one. Gains only fall, so few must be computed again.

    Args:
        kernel: (n, n) k.
        weights: (n,) w.
        covered: (n,) max k with inputs that have a label.
        count: How many.
    """
    chosen: list[int] = []
    gains = np.full(len(kernel), np.inf)
    while len(chosen) < min(count, len(kernel)):
        place = int(gains.argmax())
        gains[place] = weights @ np.maximum(kernel[place] - covered, 0)
        if int(gains.argmax()) == place:
            chosen.append(place)
            covered = np.maximum(covered, kernel[place])
            gains[place] = -np.inf
    return np.array(chosen, dtype=np.int64)
