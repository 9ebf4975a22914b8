"""Soft k-means: images that are alike get the same label.

A method's scores say where each class lies among the images of the pool; from there the pool speaks for itself. It is a
mixture of Gaussians of one variance, fitted by EM. With balance=0 the classes have equal weights and nothing is assumed
about how many images they have; with more, weights draw the classes towards equal size.
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
    """Scores -‖x - μ_c‖² / 2σ² + b_c, less than any candidate's for classes that are no candidates.

    In GZSL the labelled images hold the centres of the seen classes: each counts as an image that is wholly of its
    class.
    """

    log_shares: ClassVar[bool] = True
    learns: ClassVar[Sides] = {"means": ("C", "d"), "variance": ("one",), "offsets": ("C",)}

    means: Tensor
    variance: Tensor
    offsets: Tensor

    @classmethod
    def fit(cls, pool: ScoredPool) -> SoftKMeans:
        """EM from the method's scores; memory for two arrays (N, C)."""
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
        """(n, L): the features alone decide among the candidates."""
        return self.widened(gaussian_scores(features, self.means, self.variance, self.offsets), scores)

    @classmethod
    def restore(cls, arrays: dict[str, Scores], candidates: Classes, d: int) -> SoftKMeans:
        """See `Refinement.restore`."""
        restored = super().restore(arrays, candidates, d)
        if not (arrays["variance"] > 0).all():
            raise ValueError("the variance of the refinement must be positive")
        return restored


def maximise(pool: ScoredPool, q: Scores, densities: Scores) -> tuple[Scores, float]:
    """Means (C, d) and the variance from shares q (N, C) of the pool's images and from labelled ones.

    σ² is the mean over images, classes by their shares, and features of the squared distance. -‖x - μ_c‖² / 2σ² goes to
    `densities` (N, C).
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
    variance = total / (X.size + pool.labelled.size) or 1.0  # all images may be the same
    densities *= -0.5
    densities /= variance
    return means, variance
