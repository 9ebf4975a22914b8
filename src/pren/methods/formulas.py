"""Formulas as torch modules in double precision, for models that leave the house (`pren.label.export`).

Each says in torch what NumPy says elsewhere. The tests compare the two.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Matrix = NDArray[np.float64]


def fixed(array: Matrix) -> Tensor:
    """A copy as a tensor, so that no module shares memory with a model."""
    return torch.from_numpy(np.array(array, dtype=np.float64))


def unit(x: Tensor) -> Tensor:
    """Rows (n, d) brought to unit length; a row of zeros stays one."""
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x / torch.where(length > 0, length, torch.ones_like(length))


def squared_distances(x: Tensor, centres: Tensor) -> Tensor:
    """‖x_i - c_j‖² (n, k) of x (n, d) and centres (k, d)."""
    squares = x.square().sum(dim=1, keepdim=True) - 2 * x @ centres.T + centres.square().sum(dim=1)
    return squares.clamp(min=0)  # of rounding


class Flat(nn.Module):
    """(n, ...) -> (n, d) in double precision."""

    def forward(self, x: Tensor) -> Tensor:
        """Any numbers."""
        return x.flatten(1).double()


class Unit(nn.Module):
    """Rows brought to unit length."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, d)."""
        return unit(x)


class Affine(nn.Module):
    """(x - shift) * scale, both (d,)."""

    shift: Tensor
    scale: Tensor

    def __init__(self, shift: Matrix, scale: Matrix) -> None:
        super().__init__()
        self.register_buffer("shift", fixed(shift))
        self.register_buffer("scale", fixed(scale))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, d)."""
        return (x - self.shift) * self.scale


class Bilinear(nn.Module):
    """max_k x W_k + b, with weights (K, d, L) or, where there is a single map, (d, L)."""

    weights: Tensor
    bias: Tensor

    def __init__(self, weights: Matrix, bias: Matrix | float = 0.0) -> None:
        super().__init__()
        self.register_buffer("weights", fixed(weights))
        self.register_buffer("bias", fixed(np.asarray(bias)))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        scores = x @ self.weights
        return (scores.amax(dim=0) if scores.ndim == 3 else scores) + self.bias


def cosine(directions: Matrix) -> nn.Module:
    """Cosines of x (n, d) and L directions (L, d), which are of unit length already."""
    return nn.Sequential(Unit(), Bilinear(directions.T))


class Distances(nn.Module):
    """-‖x - μ_c‖ to L centres (L, d)."""

    centres: Tensor

    def __init__(self, centres: Matrix) -> None:
        super().__init__()
        self.register_buffer("centres", fixed(centres))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        return -squared_distances(x, self.centres).sqrt()


class Gaussians(nn.Module):
    """-‖x - μ_c‖² / 2 v + b_c with means (L, d), one variance v (1,) and offsets b (L,)."""

    means: Tensor
    variance: Tensor
    offsets: Tensor

    def __init__(self, means: Matrix, variance: Matrix, offsets: Matrix) -> None:
        super().__init__()
        self.register_buffer("means", fixed(means))
        self.register_buffer("variance", fixed(variance))
        self.register_buffer("offsets", fixed(offsets))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        return -0.5 * squared_distances(x, self.means) / self.variance + self.offsets


class DiagonalGaussians(nn.Module):
    """log N(x; μ_c, diag σ²_c) with means and variances (L, d), as two products."""

    centre: Tensor
    precisions: Tensor
    pull: Tensor
    constant: Tensor

    def __init__(self, means: Matrix, variances: Matrix) -> None:
        super().__init__()
        centre = means.mean(axis=0)  # squares of large numbers would cost digits
        precisions, away = 1 / variances, means - centre
        constant = (away**2 * precisions).sum(axis=1) + np.log(2 * np.pi * variances).sum(axis=1)
        self.register_buffer("centre", fixed(centre))
        self.register_buffer("precisions", fixed(precisions.T))
        self.register_buffer("pull", fixed(2 * (away * precisions).T))
        self.register_buffer("constant", fixed(constant))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        x = x - self.centre
        return -0.5 * (x.square() @ self.precisions - x @ self.pull + self.constant)
