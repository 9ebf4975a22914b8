"""The usual scalings. Every public re-implementation of the rivals found them worth several points.

What they need to know is learned from the labelled images alone, by scikit-learn's scalers.
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from torch import nn

from pren.methods import formulas
from pren.methods.preparation.base import Matrix, Preparation, flat, register_preparation, unit
from pren.problem import Problem
from pren.problem.inputs import chunks


@register_preparation("raw")
class Raw(Preparation):
    """Features as they are."""

    @classmethod
    def fit(cls, problem: Problem) -> Raw:
        """There is nothing to learn."""
        return cls()

    def transform(self, x: Matrix) -> Matrix:
        """The same (n, d)."""
        return x

    def module(self) -> nn.Module:
        """See `Preparation.module`."""
        return nn.Identity()


@register_preparation("l2")
class UnitLength(Raw):
    """Each image brought to unit length."""

    def transform(self, x: Matrix) -> Matrix:
        """(n, d), each row of length 1; a row of zeros stays one."""
        return unit(x)

    def module(self) -> nn.Module:
        """See `Preparation.module`."""
        return formulas.Unit()


class _Affine(Preparation):
    """(x - shift) * scale.

    scikit-learn's own `transform` gives a feature that never varies in training a scale of 1; in the pool it may vary,
    and then counts by its raw size. Here it becomes 0.
    """

    learns = ("shift", "scale")

    def transform(self, x: Matrix) -> Matrix:
        """Scale (n, d)."""
        return (x - self.arrays["shift"]) * self.arrays["scale"]

    def module(self) -> nn.Module:
        """See `Preparation.module`."""
        return formulas.Affine(self.arrays["shift"], self.arrays["scale"])


@register_preparation("standard")
class Standard(_Affine):
    """Each feature brought to mean 0 and variance 1."""

    @classmethod
    def fit(cls, problem: Problem) -> Standard:
        """Learn from the labelled images, chunk by chunk."""
        scaler = StandardScaler()
        for chunk in chunks(problem.train):
            scaler.partial_fit(flat(chunk))
        return cls(shift=scaler.mean_, scale=_inverse(np.sqrt(scaler.var_)))


@register_preparation("minmax")
class MinMax(_Affine):
    """Each feature brought to 0 to 1."""

    @classmethod
    def fit(cls, problem: Problem) -> MinMax:
        """Learn from the labelled images, chunk by chunk."""
        scaler = MinMaxScaler()
        for chunk in chunks(problem.train):
            scaler.partial_fit(flat(chunk))
        return cls(shift=scaler.data_min_, scale=_inverse(scaler.data_range_))


def _inverse(spread: Matrix) -> Matrix:
    """1 / spread (d,), and 0 where there is none."""
    scale: Matrix = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    return scale
