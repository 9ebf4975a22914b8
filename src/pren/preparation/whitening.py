"""Whitening by the seen classes: what varies within a class counts less, what tells classes apart counts more.

Square root (with its sign), unit length, the within-class covariance of the labelled images taken out, then the leading
directions of labelled and pool images together, and unit length again.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from pren.errors import PrenError
from pren.inputs import Inputs, chunks
from pren.preparation.base import Matrix, Preparation, flat, register_preparation, unit
from pren.problem import Problem

SHRINKAGE = 0.3  # of the mean variance, added to every direction: few images say little about most of them
DIRECTIONS = 100
MOST_FEATURES = 4096  # an eigenproblem of more takes minutes


@register_preparation("whitened")
class Whitened(Preparation):
    """x ↦ u(W (u(√x) - c)), u(·) of unit length, √ with its sign.

    Learned from the labelled images and, for the directions that are kept, the pool; no label of it is needed. Where no
    class has two labelled images nothing is known about the variance within one, and nothing is taken out.
    """

    learns = ("centre", "map")

    @classmethod
    def fit(cls, problem: Problem) -> Whitened:
        """Learn in two passes of bounded memory: sums and products of features."""
        d = int(np.prod(problem.train.sample_shape))
        if d > MOST_FEATURES:
            raise PrenError(f"features=whitened takes at most {MOST_FEATURES} features, not {d}: extract some first.")
        count, total, gram = _moments(problem.train)
        within = gram - _between(problem)
        pool_count, pool_total, pool_gram = _moments(problem.pool)
        everyone = count + pool_count
        centre = (total + pool_total) / everyone
        spread = (gram + pool_gram) / everyone - np.outer(centre, centre)
        whiten = _inverse_root(within / count)
        _, directions = eigh(whiten @ spread @ whiten, subset_by_index=(max(0, d - DIRECTIONS), d - 1))
        return cls(centre=centre, map=whiten @ directions[:, ::-1])

    def transform(self, x: Matrix) -> Matrix:
        """(n, d) -> (n, min(d, 100)), each of length 1."""
        return unit((_rooted(x) - self.arrays["centre"]) @ self.arrays["map"])

    def width(self, d: int) -> int:
        """How many directions are kept."""
        return int(self.arrays["map"].shape[1])


def _rooted(x: Matrix) -> Matrix:
    return unit(np.sign(x) * np.sqrt(np.abs(x)))


def _moments(inputs: Inputs) -> tuple[int, Matrix, Matrix]:
    """How many there are, Σ x (d,) and Σ x xᵀ (d, d) of rooted features."""
    d = int(np.prod(inputs.sample_shape))
    total, gram = np.zeros(d), np.zeros((d, d))
    for chunk in chunks(inputs):
        x = _rooted(flat(chunk))
        total += x.sum(axis=0)
        gram += x.T @ x
    return len(inputs), total, gram


def _between(problem: Problem) -> Matrix:
    """Σ_c n_c μ_c μ_cᵀ (d, d) over the seen classes."""
    counts = np.bincount(problem.labels, minlength=len(problem.classes))
    sums, start = np.zeros((len(counts), int(np.prod(problem.train.sample_shape)))), 0
    for chunk in chunks(problem.train):
        np.add.at(sums, problem.labels[start : start + len(chunk)], _rooted(flat(chunk)))
        start += len(chunk)
    scaled = sums / np.sqrt(np.maximum(counts, 1))[:, None]
    product: Matrix = scaled.T @ scaled
    return product


def _inverse_root(covariance: Matrix) -> Matrix:
    """(Σ + λ I)^-½, λ a share of the mean variance; the identity where there is no variance to speak of."""
    values, vectors = eigh(covariance)
    mean = float(values.mean())
    if mean <= np.finfo(np.float64).eps * len(values):  # of features of length 1
        return np.eye(len(values))
    root: Matrix = vectors / np.sqrt(np.maximum(values, 0) + SHRINKAGE * mean) @ vectors.T
    return root
