"""The formulas that score inputs: torch functions and modules, in double precision.

Scoring runs them, an export (`pren.label.export`) writes them to a file, and fitting code in NumPy calls them through
`on_arrays`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pren.problem.inputs import Inputs, chunks, joined

Matrix = NDArray[np.float64]
Sides = Mapping[str, tuple[str, ...]]  # the sides of arrays, by name


def fixed(array: Matrix) -> Tensor:
    """A copy as a tensor, so that no module shares memory with a model."""
    return torch.from_numpy(np.array(array, dtype=np.float64))


def on_arrays(formula: Callable[..., Tensor], *arrays: NDArray[Any]) -> Matrix:
    """Apply a formula to arrays."""
    # torch shares an array's memory only if it is writable and no stride is negative.
    found: Matrix = formula(*(torch.from_numpy(np.require(array, None, ["C", "W"])) for array in arrays)).numpy()
    return found


@torch.inference_mode()
def run(formula: Callable[[Tensor], Tensor], inputs: Inputs) -> Matrix:
    """Apply a formula to all inputs, in chunks: (N, ...)."""
    return joined(len(inputs), (formula(chunk).numpy() for chunk in chunks(inputs)))


def flat(x: Tensor) -> Tensor:
    """(n, ...) -> (n, d) in double precision; image arrays become flat pixels."""
    return x.flatten(1).double()


def unit(x: Tensor) -> Tensor:
    """Rows (n, d) brought to unit length; a row of zeros stays one."""
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x / torch.where(length > 0, length, torch.ones_like(length))


def squared_distances(x: Tensor, centres: Tensor) -> Tensor:
    """‖x_i - c_j‖² (n, k) of x (n, d) and centres (k, d)."""
    squares = torch.addmm(x.square().sum(dim=1, keepdim=True), x, centres.T, alpha=-2) + centres.square().sum(dim=1)
    return squares.clamp_(min=0)  # of rounding


def gaussian_scores(x: Tensor, means: Tensor, variances: Tensor, offsets: Tensor) -> Tensor:
    """-‖x - μ_c‖² / 2 v_c + b_c (n, C) of x (n, d), with means (C, d), variances (C,) or (1,) and offsets (C,)."""
    return squared_distances(x, means) * (-0.5 / variances) + offsets


def count_below(known: Tensor, x: Tensor, *, equal: bool) -> Tensor:
    """(N,) how many of the sorted numbers (n,) are below each x (N,), or equal to it if `equal`.

    ONNX has no `torch.searchsorted`.
    """
    count, step = torch.zeros_like(x, dtype=torch.int64), 1 << (len(known).bit_length() - 1)
    while step:
        more = count + step
        last = known[(more - 1).clamp(max=len(known) - 1)]
        below = last <= x if equal else last < x
        count = torch.where((more <= len(known)) & below, more, count)
        step >>= 1
    return count


class Formula(nn.Module):
    """A module whose buffers are learned arrays, by the names in `learns`."""

    learns: ClassVar[Sides] = {}  # arrays and their sides; a letter stands for one length

    def __init__(self, **arrays: Matrix) -> None:
        super().__init__()
        for name, array in arrays.items():
            if array.size:
                self.register_buffer(name, fixed(array))
            else:
                setattr(self, name, fixed(array))  # torch.export cannot save an empty buffer

    @property
    def arrays(self) -> dict[str, Matrix]:
        """The learned arrays."""
        return {name: getattr(self, name).cpu().numpy() for name in self.learns}

    @classmethod
    def check(cls, what: str, arrays: Mapping[str, Matrix], **sizes: int) -> dict[str, int]:
        """Check the names and shapes of arrays, given the lengths of some sides.

        Returns:
            The lengths of all sides.

        Raises:
            ValueError: If they do not fit; `what` names their owner.
        """
        if arrays.keys() != cls.learns.keys():
            raise ValueError(f"the {what} holds {sorted(arrays)}, not {sorted(cls.learns)}")
        for name, sides in cls.learns.items():
            shape = arrays[name].shape
            if len(shape) != len(sides) or any(
                sizes.setdefault(side, length) != length for side, length in zip(sides, shape, strict=True)
            ):
                raise ValueError(f"{name} of the {what} cannot be of shape {shape}")
        return sizes


class Flat(nn.Module):
    """(n, ...) -> (n, d) in double precision."""

    def forward(self, x: Tensor) -> Tensor:
        """Flatten and convert."""
        return flat(x)


class Columns(nn.Module):
    """Some columns, in a given order."""

    columns: Tensor

    def __init__(self, columns: NDArray[np.int64]) -> None:
        super().__init__()
        self.register_buffer("columns", torch.from_numpy(columns))

    def forward(self, x: Tensor) -> Tensor:
        """(n, L) -> (n, k)."""
        return x[:, self.columns]


class Affine(nn.Module):
    """x W + b, with weights (d, L) and offsets b (L,), or without."""

    weights: Tensor
    offsets: Tensor | None

    def __init__(self, weights: Matrix, offsets: Matrix | None = None) -> None:
        super().__init__()
        self.register_buffer("weights", fixed(weights))
        self.register_buffer("offsets", None if offsets is None else fixed(offsets))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        products = x @ self.weights
        return products if self.offsets is None else products + self.offsets


class Cosine(nn.Module):
    """cos(x, a_c) / temperature of x and L directions (L, d) of any length."""

    directions: Tensor

    def __init__(self, directions: Matrix, temperature: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("directions", unit(fixed(directions)) / temperature)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        return unit(x) @ self.directions.T


class Distances(nn.Module):
    """-‖x - μ_c‖ to L centres (L, d)."""

    centres: Tensor

    def __init__(self, centres: Matrix) -> None:
        super().__init__()
        self.register_buffer("centres", fixed(centres))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        return -squared_distances(x, self.centres).sqrt()


class Gaussians(Formula):
    """`gaussian_scores` with means (L, d), one variance (1,) and offsets (L,)."""

    learns: ClassVar[Sides] = {"means": ("L", "d"), "variance": ("one",), "offsets": ("L",)}

    means: Tensor
    variance: Tensor
    offsets: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        return gaussian_scores(x, self.means, self.variance, self.offsets)


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
