"""Mean and variance of each class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pren.methods.formulas import Matrix


def class_statistics(X: Matrix, labels: NDArray[np.int64], count: int) -> tuple[Matrix, Matrix]:
    """Mean and variance (count, d) of the inputs of every class; those of a class without inputs are 0."""
    members = np.zeros((len(X), count))
    members[np.arange(len(X)), labels] = 1.0
    sizes = np.maximum(members.sum(axis=0), 1.0)[:, None]
    means = members.T @ X / sizes
    return means, members.T @ (X - means[labels]) ** 2 / sizes
