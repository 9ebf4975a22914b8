"""Rehearsals for a pool of another kind than the labelled inputs: another camera, or drawings.

The pool of a rehearsal comes from the labelled inputs, which would be too easy. It is moved as far away from them as
the real pool is.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pren.methods.formulas import flat
from pren.methods.preparation.whitening import CHANCE, distance_by_chance
from pren.problem import Problem
from pren.problem.inputs import Inputs, chunks

Vector = NDArray[np.float64]


class Shift(NamedTuple):
    """Where the pool of a problem lies.

    Attributes:
        offset: (D,) its centre minus that of the labelled inputs.
        apart: How many times farther (squared) that is than other classes of the same kind explain.
    """

    offset: Vector
    apart: float

    @property
    def notable(self) -> bool:
        """Whether the pool is of another kind."""
        return self.apart > CHANCE

    @classmethod
    def of(cls, problem: Problem) -> Shift:
        """Compare the pool with the labelled inputs, as features or flat pixels, in one pass over each."""
        sizes = np.bincount(problem.labels, minlength=len(problem.classes)).astype(np.float64)
        sums, squares, start = np.zeros((len(sizes), int(np.prod(problem.train.sample_shape)))), 0.0, 0
        for chunk in chunks(problem.train):
            x = flat(chunk).numpy()
            np.add.at(sums, problem.labels[start : start + len(x)], x)
            squares += float((x**2).sum())
            start += len(x)
        seen = sizes > 0
        means, sizes = sums[seen] / sizes[seen, None], sizes[seen]
        within = max(squares - float(sizes @ (means**2).sum(axis=1)), 0.0) / sizes.sum()
        centre = _centre(problem.pool)
        unseen = int(problem.classes.unseen.sum())
        apart = distance_by_chance(means, within, sizes, centre, len(problem.pool), unseen)
        return cls(centre - sums.sum(axis=0) / sizes.sum(), apart)

    def applied(self, problem: Problem) -> Problem:
        """A rehearsal with its pool moved as far away."""
        offset = _centre(problem.train) + self.offset - _centre(problem.pool)
        return replace(problem, pool=MovedInputs(problem.pool, offset))


class MovedInputs(Inputs):
    """Inputs with an offset (D,) added to each."""

    def __init__(self, inputs: Inputs, offset: Vector) -> None:
        self._inputs = inputs
        self._offset = torch.from_numpy(offset.astype(np.float32)).reshape(inputs.sample_shape)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Of one input."""
        return self._inputs.sample_shape

    def __len__(self) -> int:
        return len(self._inputs)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        return self._inputs[indices] + self._offset

    def digest(self) -> bytes:
        """Of the inputs and the offset."""
        return hashlib.sha256(self._inputs.digest() + self._offset.numpy().tobytes()).digest()


def _centre(inputs: Inputs) -> Vector:
    total: Vector = sum(flat(chunk).numpy().sum(axis=0) for chunk in chunks(inputs)) / len(inputs)
    return total
