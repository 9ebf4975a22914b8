"""Whitening by the seen classes: variance within a class counts less, differences between classes count more.

The steps: square root (with its sign), unit length, division by the within-class covariance of the labelled inputs, the
leading directions of labelled and pool inputs together, and unit length again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.sparse.linalg import ArpackError, eigsh
from torch import Tensor

from pren.foundation.errors import PrenError
from pren.methods.formulas import Matrix, Sides, flat, unit
from pren.methods.preparation.base import Preparation, register_preparation
from pren.problem import Problem
from pren.problem.inputs import Inputs, chunks

LEAST_SHRINKAGE = 0.1
LEAST_DIRECTIONS, MOST_DIRECTIONS = 10, 100
MOST_FEATURES = 8192  # matrices of more take gigabytes
WIDE = 2048  # from here on, a whole eigenproblem takes longer than all the rest
ROUNDING = 1e-12  # of features of length 1
CHANCE = 4.0  # a pool that is so many times farther away than expected is of another kind


@register_preparation("whitened")
class Whitened(Preparation):
    """x ↦ u(W (u(√x) - c)), u(·) of unit length, √ with its sign.

    The labelled inputs give the variance within a class; with the pool, they give the directions. If no class has two
    labelled inputs, that variance is not known, and W only chooses directions. If the pool is unlike the labelled
    inputs, their variance counts less.
    """

    learns: ClassVar[Sides] = {"centre": ("d",), "map": ("d", "k")}

    centre: Tensor
    map: Tensor

    @classmethod
    def fit(cls, problem: Problem) -> Whitened:
        """Learn in two passes of bounded memory: sums and products of features."""
        d = int(np.prod(problem.train.sample_shape))
        if d > MOST_FEATURES:
            message = f"features=whitened takes at most {MOST_FEATURES} features, not {d}: take another preparation."
            raise PrenError("features-too-many", message)
        n = len(problem.train) + len(problem.pool)
        span = _span(problem) if n < d else None
        count, total, gram = _moments(problem.train, span)
        means, sizes = _class_means(problem, span)
        within = (gram - (means.T * sizes) @ means) / count
        pool_count, pool_total, pool_gram = _moments(problem.pool, span)
        centre = (total + pool_total) / n
        spread = (gram + pool_gram) / n - np.outer(centre, centre)
        variance, unseen = float(np.trace(within)), int(problem.classes.unseen.sum())
        apart = distance_by_chance(means, variance, sizes, pool_total / pool_count, pool_count, unseen)
        # Few inputs say little about most of the d directions, and nothing about other kinds of inputs.
        shrinkage = max(d / count, LEAST_SHRINKAGE) * max(1.0, apart / CHANCE) ** 2
        # The means of L classes lie in L - 1 directions.
        kept = min(max(len(problem.classes) - 1, LEAST_DIRECTIONS), MOST_DIRECTIONS, len(within))
        leading = _leading if len(within) <= WIDE else _leading_of_many
        directions = leading(within, spread, shrinkage * variance / d, kept)
        return cls(centre=centre, map=directions) if span is None else cls(centre=span @ centre, map=span @ directions)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, k), rows of length 1, or 0 at the centre."""
        return whitened(x, self.centre, self.map)

    def width(self, d: int) -> int:
        """How many directions are kept."""
        return self.map.shape[1]


def whitened(x: Tensor, centre: Tensor, directions: Tensor) -> Tensor:
    """u(W (u(√x) - c)) of x (n, d), with c (d,) and directions Wᵀ (d, k): (n, k)."""
    deviations = rooted(x) - centre
    off_centre = torch.linalg.vector_norm(deviations, dim=1, keepdim=True) > ROUNDING  # the centre has no direction
    return unit(deviations * off_centre @ directions)


def rooted(x: Tensor) -> Tensor:
    """u(√x) of x (n, d), √ with its sign."""
    return unit(x.sign() * x.abs().sqrt())


def _span(problem: Problem) -> Matrix:
    """(d, n) an orthonormal basis of the n < d inputs: outside of it nothing varies, and inside all takes less time."""
    inputs = [rooted(flat(chunk)).numpy() for each in (problem.train, problem.pool) for chunk in chunks(each)]
    basis: Matrix = np.linalg.qr(np.concatenate(inputs).T)[0]
    return basis


def _rooted_chunks(inputs: Inputs, span: Matrix | None) -> Iterator[Matrix]:
    """Rooted features (n, d), or their coordinates in a span (d, r), a piece at a time."""
    for chunk in chunks(inputs):
        x = rooted(flat(chunk)).numpy()
        yield x if span is None else x @ span


def _moments(inputs: Inputs, span: Matrix | None) -> tuple[int, Matrix, Matrix]:
    """The number of inputs, Σ x (d,) and Σ x xᵀ (d, d) of rooted features, or of their coordinates."""
    pieces = _rooted_chunks(inputs, span)
    x = next(pieces)
    total, gram = x.sum(axis=0), x.T @ x
    for x in pieces:
        total += x.sum(axis=0)
        gram += x.T @ x
    return len(inputs), total, gram


def _class_means(problem: Problem, span: Matrix | None) -> tuple[Matrix, Matrix]:
    """The means (S, d) of the seen classes, and how many inputs they have (S,)."""
    sizes = np.bincount(problem.labels, minlength=len(problem.classes)).astype(np.float64)
    width = int(np.prod(problem.train.sample_shape)) if span is None else span.shape[1]
    sums, start = np.zeros((len(sizes), width)), 0
    for x in _rooted_chunks(problem.train, span):
        np.add.at(sums, problem.labels[start : start + len(x)], x)
        start += len(x)
    seen = sizes > 0
    return sums[seen] / sizes[seen, None], sizes[seen]


def distance_by_chance(
    means: Matrix, within: float, sizes: Matrix, pool_mean: Matrix, pool_size: int, unseen: int
) -> float:
    """How many times farther (squared) the pool is from the labelled inputs than other classes of the kind explain.

    Args:
        means: (S, d) of the seen classes.
        within: The variance within a class, summed over features.
        sizes: (S,) how many inputs the seen classes have.
        pool_mean: (d,).
        pool_size: How many inputs the pool has.
        unseen: How many classes the pool has.

    Returns:
        About 1 if the unseen classes are like the seen ones, and 1 if there is one seen class only.
    """
    S, centre = len(means), means.mean(axis=0)
    if S < 2:
        return 1.0
    between = ((means - centre) ** 2).sum() / (S - 1) - within * (1 / sizes).mean()
    expected = max(between, 0.0) * (1 / S + 1 / unseen) + within * (1 / sizes.sum() + 1 / pool_size)
    return float(((pool_mean - centre) ** 2).sum() / expected) if expected > 0 else 1.0


def _leading(within: Matrix, spread: Matrix, λ: float, kept: int) -> Matrix:
    """(d, kept): (Σ + λ I)^-½ V for the leading eigenvectors V of (Σ + λ I)^-½ S (Σ + λ I)^-½, the first one first."""
    d, whiten = len(within), _inverse_root(within, λ)
    _, directions = eigh(whiten @ spread @ whiten, subset_by_index=(d - kept, d - 1))
    found: Matrix = whiten @ directions[:, ::-1]
    return found


def _leading_of_many(within: Matrix, spread: Matrix, λ: float, kept: int) -> Matrix:
    """The same up to signs and rounding, for many features: with Σ + λ I = C Cᵀ, the columns are C^-T V.

    Here V are the leading eigenvectors of C^-1 S C^-T. They are found one after the other, without all the others.
    """
    root = np.eye(len(within)) if _is_flat(within) else cholesky(within + λ * np.eye(len(within)), lower=True)
    half = solve_triangular(root, spread, lower=True)
    both = solve_triangular(root, half.T, lower=True)
    both, start = (both + both.T) / 2, np.random.default_rng(0).normal(size=len(within))
    try:
        values, vectors = eigsh(both, k=kept, which="LA", v0=start)
    except ArpackError:  # many directions lead alike, or none does
        values, vectors = eigh(both, subset_by_index=(len(both) - kept, len(both) - 1))
    found: Matrix = solve_triangular(root, vectors[:, np.argsort(-values)], lower=True, trans="T")
    return found


def _inverse_root(covariance: Matrix, λ: float) -> Matrix:
    """(Σ + λ I)^-½; the identity where there is no variance."""
    if _is_flat(covariance):
        return np.eye(len(covariance))
    values, vectors = eigh(covariance)
    root: Matrix = vectors / np.sqrt(np.maximum(values, 0) + λ) @ vectors.T
    return root


def _is_flat(covariance: Matrix) -> bool:
    """Whether features, of length 1, have no variance but rounding."""
    return bool(np.trace(covariance) <= np.finfo(np.float64).eps * len(covariance) ** 2)
