"""Which images of the pool get a pseudo-label."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PseudoLabels:
    """The pseudo-labelled part of the pool, by class and then by falling score.

    Attributes:
        images: (n,) places in the pool.
        labels: (n,) the class each is taken for.
    """

    images: NDArray[np.int64]
    labels: NDArray[np.int64]

    @classmethod
    def none(cls) -> PseudoLabels:
        """No image at all, as before the first round."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.images)

    def changed_since(self, before: PseudoLabels) -> int:
        """How many of these (image, label) pairs were not there before."""
        old = set(zip(before.images.tolist(), before.labels.tolist(), strict=True))
        return sum(pair not in old for pair in zip(self.images.tolist(), self.labels.tolist(), strict=True))


def per_class(images_per_class: float, rho: float, n_max: int) -> int:
    """N_pseudo = min(ρ N_avg, N_max), rounded to nearest, at least 1."""
    return max(1, math.floor(min(rho * images_per_class, n_max) + 0.5))


def select(scores: NDArray[np.float64], candidates: NDArray[np.bool_], top: int) -> PseudoLabels:
    """Keep the best images of every candidate class *among those predicted as that class*.

    The result does not depend on the order of the pool (but for images with equal scores).

    Args:
        scores: (N, L).
        candidates: (L,) the classes that may be predicted.
        top: At most how many images per class.
    """
    classes = np.flatnonzero(candidates)
    best = scores[:, classes].argmax(axis=1)
    predicted = classes[best]
    score = scores[np.arange(len(scores)), predicted]
    order = np.lexsort((-score, predicted))  # by class, best first
    sorted_classes = predicted[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_classes, sorted_classes)
    chosen = order[rank < top]
    return PseudoLabels(chosen.astype(np.int64), predicted[chosen].astype(np.int64))
