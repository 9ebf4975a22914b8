"""Which images of a pool a person should label next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics.pairwise import euclidean_distances

from pren.methods.preparation import Matrix

MOST_COMPARED = 5_000  # images of a larger pool that are compared with each other
NEIGHBOURS = 10  # how far away this neighbour is says what is near
NEAR = 0.5  # of that squared distance: where an image stands for another by 1/e

Places = NDArray[np.int64]


def suggest(
    features: Matrix, doubt: Matrix, count: int, given: Places | None = None, among: Places | None = None
) -> Places:
    """Choose images whose labels help most: doubtful ones that stand for other doubtful ones around them.

    Greedy facility location: max Σ_i w_i max_s k(x_i, x_s) over the chosen images s. w is the rank of an image's doubt,
    so doubt may have any unit; k(x, y) = exp(-‖x - y‖² / h). Of a pool that is too large only every second image takes
    part, or every third, and so on.

    Args:
        features: (N, d) in which images of a class are near each other.
        doubt: (N,) larger is less sure.
        count: How many to choose; fewer if there are fewer.
        given: (n,) places of images that have a label already: they stand for those around them, too.
        among: (m,) places of images to choose from, rising; all if None.

    Returns:
        (count,) places, best first.
    """
    given = np.empty(0, dtype=np.int64) if given is None else given
    left = np.setdiff1d(np.arange(len(features)) if among is None else among, given)
    left = left[:: -(-len(left) // MOST_COMPARED) or 1]
    if not len(left):
        return left
    X, labelled = features[left], features[given]
    # By a power of two, which rounds nothing: squares of large features are beyond float32.
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
    """h, from the squared distances (n, n) of images; 1 where most are the same."""
    neighbour = min(NEIGHBOURS, len(distances) - 1)
    far = [np.partition(row, neighbour)[neighbour] for row in distances]
    return NEAR * float(np.median(far)) or 1.0


def _greedy(kernel: NDArray[np.float32], weights: Matrix, covered: Matrix, count: int) -> Places:
    """Choose what adds most, one by one. What an image adds only ever falls, so most are not looked at again.

    Args:
        kernel: (n, n) k.
        weights: (n,) w.
        covered: (n,) max k with what was chosen before.
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
