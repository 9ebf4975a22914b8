"""What a preparation is."""

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
    """A map of feature vectors, as a torch module; what it learns has the side "d" for features."""

    @classmethod
    @abstractmethod
    def fit(cls: type[Self], problem: Problem) -> Self:
        """Learn from the labelled images and, if need be, the pool."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, d'), in double precision."""

    def of(self, inputs: Inputs) -> Matrix:
        """All inputs as (N, d'); images are taken as flat pixels."""
        prepare = nn.Sequential(Flat(), self).cpu()  # a network may have taken it to its device
        return run(prepare, inputs)

    def width(self, d: int) -> int:
        """d', for features of length d."""
        return d

    @classmethod
    def restore(cls: type[Self], arrays: dict[str, Matrix], d: int) -> Self:
        """The inverse of reading `arrays`.

        Raises:
            ValueError: If they are not those of features of length d.
        """
        cls.check("preparation", arrays, d=d)
        return cls(**arrays)


PREPARATIONS: Registry[type[Preparation]] = Registry("preparation of features")
register_preparation = PREPARATIONS.register
