"""The base class of preparations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from torch import Tensor, nn

from pren.foundation.registry import Registry
from pren.methods.formulas import Flat, Formula, Matrix, run
from pren.problem import Problem
from pren.problem.inputs import Inputs

Self = TypeVar("Self", bound="Preparation")


class Preparation(Formula, ABC):
    """A map of feature vectors as a torch module; side "d" of learned arrays is features."""

    @classmethod
    @abstractmethod
    def fit(cls: type[Self], problem: Problem) -> Self:
        """Learn from the labelled inputs and maybe the pool."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, d'), in double precision."""

    def of(self, inputs: Inputs) -> Matrix:
        """All inputs as (N, d'); image arrays become flat pixels."""
        return run(nn.Sequential(Flat(), self).cpu(), inputs)  # a network may have moved it to its device

    def width(self, d: int) -> int:
        """d', for features of length d."""
        return d

    @classmethod
    def restore(cls: type[Self], arrays: dict[str, Matrix], d: int) -> Self:
        """The inverse of `arrays`, for features of length d.

        Raises:
            ValueError: If the arrays do not fit.
        """
        cls.check("preparation", arrays, d=d)
        return cls(**arrays)


PREPARATIONS: Registry[type[Preparation]] = Registry("preparation of features")
register_preparation = PREPARATIONS.register
