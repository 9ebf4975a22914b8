"""Soft k-means: images of the pool that look alike get the same label.

A method's scores say where each class lies among the images of the pool; from there the pool speaks for itself. It is a
mixture of Gaussians of one variance and equal weights, fitted by EM: nothing is assumed about how many images a class
has, and there is nothing to choose.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from pren.refinement.base import ScoredPool, Scores, register_refinement

DECIDED = 3.0  # how much the method's scores, of variance 1 for each image, are believed at the start
STEPS = 15


@register_refinement("soft-kmeans")
def soft_kmeans(pool: ScoredPool) -> Scores:
    """Scores (N, L): -‖x - μ_c‖² / 2σ², less than any candidate's for classes that are no candidates."""
    X, columns = pool.features, np.flatnonzero(pool.candidates)
    q = softmax(DECIDED * _of_variance_1(pool.scores[:, columns]), axis=1)
    for _ in range(STEPS):
        densities = log_densities(X, q)
        q = softmax(densities, axis=1)
    refined = np.empty_like(pool.scores)
    refined[:] = densities.min(axis=1, keepdims=True) - 1.0
    refined[:, columns] = densities
    return refined


def log_densities(X: Scores, q: Scores) -> Scores:
    """One step: means and the variance from shares q (N, C) of images X (N, d), and -‖x - μ_c‖² / 2σ² (N, C) from them.

    σ² is the mean over images, classes by their shares, and features of the squared distance.
    """
    means = q.T @ X / np.maximum(q.sum(axis=0), np.finfo(np.float64).tiny)[:, None]
    squares = (X**2).sum(axis=1)[:, None] - 2 * X @ means.T + (means**2).sum(axis=1)
    squares = np.maximum(squares, 0.0)  # of rounding
    variance = float((q * squares).sum()) / X.size
    densities: Scores = -0.5 * squares / (variance or 1.0)  # all images may be the same
    return densities


def _of_variance_1(scores: Scores) -> Scores:
    """Scores have no unit: an image's (n, C) are brought to mean 0 and variance 1."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True)
    scaled: Scores = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    return scaled
