"""The usual scalings, learned from the labelled inputs by scikit-learn's scalers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from torch import Tensor

from pren.methods.formulas import Matrix, Sides, flat, unit
from pren.methods.preparation.base import Preparation, register_preparation
from pren.problem import Problem
from pren.problem.inputs import chunks


@register_preparation("raw")
class Raw(Preparation):
    """Features as they are."""

    @classmethod
    def fit(cls, problem: Problem) -> Raw:
        """There is nothing to learn."""
        return cls()

    def forward(self, x: Tensor) -> Tensor:
        """The same (n, d)."""
        return x


@register_preparation("l2")
class UnitLength(Raw):
    """Each input brought to unit length."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, d), each row of length 1; a row of zeros stays one."""
        return unit(x)


class _Affine(Preparation):
    """(x - shift) * scale.

    A feature that is constant in training becomes 0. scikit-learn's `transform` would keep its raw size in the pool.
    """

    learns: ClassVar[Sides] = {"shift": ("d",), "scale": ("d",)}

    shift: Tensor
    scale: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Scale (n, d)."""
        return (x - self.shift) * self.scale


@register_preparation("standard")
class Standard(_Affine):
    """Each feature brought to mean 0 and variance 1."""

    @classmethod
    def fit(cls, problem: Problem) -> Standard:
        """Learn from the labelled inputs, chunk by chunk."""
        scaler = StandardScaler()
        for chunk in chunks(problem.train):
            scaler.partial_fit(flat(chunk).numpy())
        return cls(shift=scaler.mean_, scale=_inverse(np.sqrt(scaler.var_)))


@register_preparation("minmax")
class MinMax(_Affine):
    """Each feature brought to 0 to 1."""

    @classmethod
    def fit(cls, problem: Problem) -> MinMax:
        """Learn from the labelled inputs, chunk by chunk."""
        scaler = MinMaxScaler()
        for chunk in chunks(problem.train):
            scaler.partial_fit(flat(chunk).numpy())
        return cls(shift=scaler.data_min_, scale=_inverse(scaler.data_range_))


def _inverse(spread: Matrix) -> Matrix:
    """1 / spread (d,), and 0 where the spread is 0."""
    scale: Matrix = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    return scale
