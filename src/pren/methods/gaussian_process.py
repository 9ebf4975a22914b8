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
    eigenvalues, Q = eigh(kernel(known, known, width))
    rotated = Q.T @ values
    best = np.inf
    for ν in NOISES:
        inverse = 1 / (np.maximum(eigenvalues, 0) + ν)
        G_diagonal = Q**2 @ inverse  # of G = (K + ν I)^-1
        weights = Q @ (inverse[:, None] * rotated)  # G values
        errors = weights / G_diagonal[:, None]  # each class from all others
        if (error := float((errors**2).sum())) < (1 - ROUNDING) * best:  # the first of equal ones
            best, chosen = error, (ν, inverse, weights, float((weights * errors).mean()))
    ν, inverse, weights, s = chosen
    across = kernel(wanted, known, width)
    explained = across @ (Q * np.sqrt(inverse))
    covariance = kernel(wanted, wanted, width) - explained @ explained.T + ν * np.eye(len(wanted))
    return Guess(across @ weights, (s or 1.0) * covariance)  # all means may be zero


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
