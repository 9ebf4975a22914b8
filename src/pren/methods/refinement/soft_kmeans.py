"""Soft k-means: similar inputs get the same label.

EM fits a mixture of Gaussians of one variance to the pool, from the shares that the method's scores give. With
balance=0 classes have equal weights and may have any size; with more, weights draw them towards equal size.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import softmax
from torch import Tensor

from pren.methods.formulas import Sides, gaussian_scores, on_arrays, squared_distances
from pren.methods.refinement.base import (
    Classes,
    Refinement,
    ScoredPool,
    Scores,
    blocks,
    register_refinement,
)
from pren.methods.refinement.sinkhorn import even_offsets

STEPS = 15


@register_refinement("soft-kmeans")
class SoftKMeans(Refinement):
    """Scores -‖x - μ_c‖² / 2σ² + b_c; classes that are no candidates score less than any candidate.

    A labelled input counts as one that is wholly of its class.
    """

    log_shares: ClassVar[bool] = True
    learns: ClassVar[Sides] = {"means": ("C", "d"), "variance": ("one",), "offsets": ("C",)}

    means: Tensor
    variance: Tensor
    offsets: Tensor

    @classmethod
    def fit(cls, pool: ScoredPool) -> SoftKMeans:
        """EM from the method's scores, with two arrays (N, C) in memory."""
        q = pool.shares()
        densities, even = np.empty_like(q), np.zeros(q.shape[1])
        for _ in range(STEPS):
            means, variance = maximise(pool, q, densities)
            offsets = np.zeros_like(even)
            if pool.balance > 0:
                offsets, even = even_offsets(densities, pool.balanced(), pool.balance, even)
            for block in blocks(*q.shape):
                q[block] = softmax(densities[block] + offsets, axis=1)
        return cls(pool.candidates, means=means, variance=np.array([variance]), offsets=offsets)

    def forward(self, scores: Tensor, features: Tensor) -> Tensor:
        """(n, L), from the features alone for candidates."""
        return self.widened(gaussian_scores(features, self.means, self.variance, self.offsets), scores)

    @classmethod
    def restore(cls, arrays: dict[str, Scores], candidates: Classes, d: int) -> SoftKMeans:
        """See `Refinement.restore`."""
        restored = super().restore(arrays, candidates, d)
        if not (arrays["variance"] > 0).all():
            raise ValueError("the variance of the refinement must be positive")
        return restored


def maximise(pool: ScoredPool, q: Scores, densities: Scores) -> tuple[Scores, float]:
    """Means (C, d) and σ² from shares q (N, C) of the pool's inputs and from labelled ones.

    σ² is the mean squared distance over features, inputs and classes by their shares. It also writes -‖x - μ_c‖² / 2σ²
    to `densities` (N, C).
    """
    X, places = pool.features, pool.places()
    sums, counts = q.T @ X, q.sum(axis=0)
    np.add.at(sums, places, pool.labelled)
    counts += np.bincount(places, minlength=len(counts))
    means = sums / np.maximum(counts, np.finfo(np.float64).tiny)[:, None]
    total = float(((pool.labelled - means[places]) ** 2).sum())
    for block in blocks(*q.shape):
        densities[block] = on_arrays(squared_distances, X[block], means)
        total += float((q[block] * densities[block]).sum())
    variance = total / (X.size + pool.labelled.size) or 1.0  # all inputs may be equal
    densities *= -0.5
    densities /= variance
    return means, variance
