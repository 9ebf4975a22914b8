"""Which images of the pool get a pseudo-label.

A rule is a function ``(scores, candidates, per_class, last, progress) -> PseudoLabels``. `top_per_class` is the paper's
rule; `pren.methods.selection` has all rules by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Classes = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PseudoLabels:
    """The pseudo-labelled part of the pool, by class and then by falling score.

    Attributes:
        images: (n,) places in the pool.
        labels: (n,) the predicted class of each.
    """

    images: NDArray[np.int64]
    labels: NDArray[np.int64]

    @classmethod
    def none(cls) -> PseudoLabels:
        """No pseudo-labels, as before the first round."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.images)

    def changed_since(self, before: PseudoLabels) -> int:
        """How many of these (image, label) pairs are not in `before`."""
        old = set(zip(before.images.tolist(), before.labels.tolist(), strict=True))
        return sum(pair not in old for pair in zip(self.images.tolist(), self.labels.tolist(), strict=True))


SelectionRule = Callable[[Scores, Classes, int, PseudoLabels, float], PseudoLabels]


def per_class(images_per_class: float, rho: float, n_max: int) -> int:
    """N_pseudo = min(ρ N_avg, N_max), rounded to nearest, at least 1."""
    return max(1, math.floor(min(rho * images_per_class, n_max) + 0.5))


def best_candidate(scores: Scores, candidates: Classes) -> NDArray[np.int64]:
    """Eq. 6: (N,) the candidate class (L,) with the largest score (N, L) of every image."""
    classes = np.flatnonzero(candidates)
    best: NDArray[np.int64] = classes[scores[:, classes].argmax(axis=1)]
    return best


def top_per_class(
    scores: Scores, candidates: Classes, per_class: int, last: PseudoLabels, progress: float = 1.0
) -> PseudoLabels:
    """Choose the best images of every candidate class *among those predicted as that class*.

    The result does not depend on the order of the pool, except for images with equal scores.

    Args:
        scores: (N, L).
        candidates: (L,) the classes that may be predicted.
        per_class: At most how many images per class.
        last: The pseudo-labels of the round before; this rule does not use them.
        progress: The number of the round divided by that of the last one; this rule does not use it.
    """
    predicted = best_candidate(scores, candidates)
    score = scores[np.arange(len(scores)), predicted]
    order = np.lexsort((-score, predicted))  # by class, best first
    sorted_classes = predicted[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_classes, sorted_classes)
    chosen = order[rank < per_class]
    return PseudoLabels(chosen.astype(np.int64), predicted[chosen])
