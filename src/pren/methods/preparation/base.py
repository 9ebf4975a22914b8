"""What a preparation is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.foundation.registry import Registry
from pren.problem import Problem
from pren.problem.inputs import Inputs, chunks, joined

Matrix = NDArray[np.float64]
Self = TypeVar("Self", bound="Preparation")


class Preparation(ABC):
    """A map of feature vectors.

    Args:
        **arrays: What was learned, by the names in `learns`.
    """

    learns: ClassVar[tuple[str, ...]] = ()  # the names of the arrays it learns; each begins with a side of length d

    def __init__(self, **arrays: Matrix) -> None:
        self.arrays = arrays

    @classmethod
    @abstractmethod
    def fit(cls: type[Self], problem: Problem) -> Self:
        """Learn from the labelled images and, if need be, the pool."""

    @abstractmethod
    def transform(self, x: Matrix) -> Matrix:
        """(n, d) -> (n, d')."""

    def __call__(self, inputs: Inputs) -> Matrix:
        """All inputs as (N, d'); images are taken as flat pixels."""
        return joined(len(inputs), (self.transform(flat(chunk)) for chunk in chunks(inputs)))

    def module(self) -> nn.Module:
        """The same as `transform` in torch, (n, d) -> (n, d') in double precision, for models that are exported.

        Raises:
            PrenError: If there is none.
        """
        raise PrenError(
            "export-unsupported",
            f"The preparation {type(self).__name__} has no module, so its models cannot be exported.",
        )

    def width(self, d: int) -> int:
        """d', for features of length d."""
        return d

    @classmethod
    def restore(cls: type[Self], arrays: dict[str, Matrix], d: int) -> Self:
        """The inverse of reading `arrays`.

        Raises:
            ValueError: If they are not those of features of length d.
        """
        if arrays.keys() != set(cls.learns):
            raise ValueError(f"the preparation of features holds {sorted(arrays)}, not {sorted(cls.learns)}")
        if any(array.shape[:1] != (d,) for array in arrays.values()):
            raise ValueError(f"the preparation is not that of {d} features")
        return cls(**arrays)


PREPARATIONS: Registry[type[Preparation]] = Registry("preparation of features")
register_preparation = PREPARATIONS.register


def flat(chunk: Tensor) -> Matrix:
    """(n, *sample_shape) as (n, d) in double precision; images become flat pixels."""
    return chunk.flatten(1).double().numpy()


def unit(rows: Matrix) -> Matrix:
    """Rows (n, d) brought to unit length; a row of zeros stays one."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Matrix = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return scaled
