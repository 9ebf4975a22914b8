"""Features as the linear methods take them: a matrix in memory, scaled in one of the usual ways.

Every public re-implementation of the rivals found the scaling worth several points, so it is a parameter of theirs.
What it needs to know is learned from the labelled images alone.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pren.errors import PrenError
from pren.inputs import Inputs, chunks

MOST_FEATURES = 20_000  # systems of d x d would not fit beyond
Matrix = NDArray[np.float64]
Scaling = Literal["raw", "l2", "standard", "minmax"]


def flat(chunk: Tensor) -> Matrix:
    """(n, *sample_shape) as (n, d) in double precision; images become flat pixels."""
    return chunk.flatten(1).double().numpy()


def width(inputs: Inputs, method: str) -> int:
    """d, the length of a flat input.

    Raises:
        PrenError: If that is more than a linear method can take.
    """
    d = int(np.prod(inputs.sample_shape))
    if d > MOST_FEATURES:
        raise PrenError(
            f"{method} solves for {d} inputs at once, which is too many: extract features first (--frozen)."
        )
    return d


def unit(rows: Matrix) -> Matrix:
    """Rows (n, d) brought to unit length; a row of zeros stays one."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Matrix = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return scaled


class Scaler:
    """(x - shift) * scale, or x to unit length.

    Args:
        kind: "raw" leaves features as they are, "l2" gives each image unit length, "standard" gives each feature mean 0
            and variance 1, "minmax" brings each feature to 0 to 1. A feature that never varies becomes 0.
        shift: (d,) as `fit` found it.
        scale: (d,)
    """

    def __init__(self, kind: Scaling, shift: Matrix, scale: Matrix) -> None:
        self.kind = kind
        self.shift = shift
        self.scale = scale

    @classmethod
    def fit(cls, kind: Scaling, inputs: Inputs) -> Scaler:
        """Learn from the labelled images, in one pass."""
        d = int(np.prod(inputs.sample_shape))
        shift, scale = np.zeros(d), np.ones(d)
        if kind == "standard":
            count, mean, spread = 0, np.zeros(d), np.zeros(d)
            for x in map(flat, chunks(inputs)):  # Chan's way of joining chunks: sums of squares would lose digits
                step = x.mean(axis=0) - mean
                spread += x.var(axis=0) * len(x) + step**2 * count * len(x) / (count + len(x))
                mean += step * len(x) / (count + len(x))
                count += len(x)
            shift, spread = mean, np.sqrt(spread / count)
            # Exactly 0 if all are equal: sums of a chunk of single precision numbers lose nothing in double precision.
            scale = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
        elif kind == "minmax":
            extremes = [(x.min(axis=0), x.max(axis=0)) for x in map(flat, chunks(inputs))]
            shift = np.min([low for low, _ in extremes], axis=0)
            spread = np.max([high for _, high in extremes], axis=0) - shift
            scale = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
        return cls(kind, shift, scale)

    def __call__(self, inputs: Inputs) -> Matrix:
        """All inputs as (N, d)."""
        return np.concatenate([self.transform(flat(chunk)) for chunk in chunks(inputs)])

    def transform(self, x: Matrix) -> Matrix:
        """Scale (n, d)."""
        return unit(x) if self.kind == "l2" else (x - self.shift) * self.scale

    def state(self) -> dict[str, Tensor]:
        """What was learned; the kind is a parameter of the method."""
        return {"scaler.shift": torch.from_numpy(self.shift), "scaler.scale": torch.from_numpy(self.scale)}

    @classmethod
    def restore(cls, kind: Scaling, tensors: dict[str, Tensor], d: int) -> Scaler:
        """The inverse of `state`.

        Raises:
            ValueError: If the tensors are not of length d.
        """
        shift, scale = tensors["scaler.shift"], tensors["scaler.scale"]
        if any(part.shape != (d,) or part.dtype != torch.float64 for part in (shift, scale)):
            raise ValueError(f"the scaling is not that of {d} features")
        return cls(kind, shift.numpy(), scale.numpy())
