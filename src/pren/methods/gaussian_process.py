"""Gaussian-process regression from signatures to class means; all its numbers come from the seen classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from pren.methods.formulas import Matrix, on_arrays, squared_distances

NOISES = np.logspace(-2, 2, 17)  # tried for ν; the kernel of a class with itself is about 3
ROUNDING = 1e-12  # relative: smaller differences do not count


class Guess(NamedTuple):
    """The means of u classes, predicted from their signatures.

    Attributes:
        means: (u, d).
        covariance: (u, u) of each feature of the means; it has an inverse.
    """

    means: Matrix
    covariance: Matrix


class LeftOut(NamedTuple):
    """What leaving out one of n classes at a time shows of how well signatures predict means.

    Attributes:
        error: Σ ‖μ_c - guess from all others‖².
        ν: The noise with the least error.
        scale: s, which makes the errors as large as expected.
        Q: (n, n) the eigenvectors of the kernel.
        inverse: (n,) 1 / (eigenvalue + ν).
        weights: (n, d) G values, G = (K + ν I)^-1.
    """

    error: float
    ν: float
    scale: float
    Q: Matrix
    inverse: Matrix
    weights: Matrix

    @classmethod
    def of(cls, signatures: Matrix, values: Matrix, width: float) -> LeftOut:
        """From scaled signatures (n, m), the means (n, d) and the width of the kernel."""
        eigenvalues, Q = eigh(kernel(signatures, signatures, width))
        rotated = Q.T @ values
        best: LeftOut | None = None
        for ν in NOISES:
            inverse = 1 / (np.maximum(eigenvalues, 0) + ν)
            G_diagonal = Q**2 @ inverse
            weights = Q @ (inverse[:, None] * rotated)
            errors = weights / G_diagonal[:, None]  # each class from all others
            error = float((errors**2).sum())
            if best is None or error < (1 - ROUNDING) * best.error:  # the first of equal ones
                best = cls(error, float(ν), float((weights * errors).mean()), Q, inverse, weights)
        assert best is not None
        return best


def guess_means(known: Matrix, values: Matrix, wanted: Matrix) -> Guess:
    """Predict the means of classes from the means of others.

    A mean is a function of the signature, with covariance s k(a, b), plus noise of variance s ν. Leaving one class out
    at a time gives ν (the smallest error) and s (errors as large as expected).

    Args:
        known: (n, m) signatures of classes with known means.
        values: (n, d) these means.
        wanted: (u, m) signatures of the classes to predict.
    """
    known, wanted = scaled(known, wanted)
    width = kernel_width(known)
    left = LeftOut.of(known, values, width)
    across = kernel(wanted, known, width)
    explained = across @ (left.Q * np.sqrt(left.inverse))
    covariance = kernel(wanted, wanted, width) - explained @ explained.T + left.ν * np.eye(len(wanted))
    return Guess(across @ left.weights, (left.scale or 1.0) * covariance)  # all means may be zero


def told(signatures: Matrix, values: Matrix) -> float:
    """How much signatures (n, m) tell of the means (n, d) of two or more classes: at most 1, and 0 or less for nothing.

    It is 1 less the squared error of the guesses of each class from all others, as a share of that of the mean of the
    others.
    """
    known, _ = scaled(signatures, signatures[:0])
    error = LeftOut.of(known, values, kernel_width(known)).error
    n = len(values)
    spread = float(((values - values.mean(axis=0)) ** 2).sum()) * (n / (n - 1)) ** 2
    return 1 - error / spread if spread > 0 else 0.0


def scaled(known: Matrix, wanted: Matrix) -> tuple[Matrix, Matrix]:
    """Signatures minus the mean of the known ones, scaled so that these have a root mean square length of 1."""
    centre = known.mean(axis=0)
    length = float(np.sqrt(((known - centre) ** 2).sum(axis=1).mean()))
    if length <= ROUNDING * np.abs(known).max():  # all are the same
        length = 1.0
    return (known - centre) / length, (wanted - centre) / length


def kernel_width(signatures: Matrix) -> float:
    """h, the median squared distance of two scaled signatures (n, m); 1 where most are equal."""
    apart = on_arrays(squared_distances, signatures, signatures)[np.triu_indices(len(signatures), 1)]
    width = float(np.median(apart)) if len(apart) else 0.0
    return width if width > ROUNDING else 1.0


def kernel(a: Matrix, b: Matrix, width: float) -> Matrix:
    """k(a, b) = 1 + a·b + exp(-‖a - b‖² / h): a constant, a linear and a local part."""
    similarity: Matrix = 1 + a @ b.T + np.exp(-on_arrays(squared_distances, a, b) / width)
    return similarity
