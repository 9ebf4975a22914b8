"""What a refinement is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.foundation.registry import Registry
from pren.problem import ClassTable

Scores = NDArray[np.float64]
Classes = NDArray[np.bool_]
Sides = Mapping[str, tuple[str, ...]]  # of arrays by name, what their sides are
Self = TypeVar("Self", bound="Refinement")

DECIDED = 3.0  # how much the method's scores, of variance 1 for each image, are believed at the start
BLOCK_NUMBERS = 2**23  # at most how many numbers (images x classes) are worked on at once


@dataclass(frozen=True, eq=False)
class ScoredPool:
    """All that a refinement may learn from. Images of the pool that a person has labelled are among the labelled ones.

    Attributes:
        scores: (N, L) as the method gives them, larger is better.
        features: (N, d) the pool as the method sees it, but for images that a person has labelled.
        classes: The L classes.
        candidates: (L,) those that an image can be taken for.
        labelled: (n, d) the labelled images of candidate classes as the method sees them: in ZSL only those of the pool
            that a person has labelled.
        labels: (n,) their classes.
        balance: How strongly unseen classes are held to equal size, from 0 to 1.
    """

    scores: Scores
    features: Scores
    classes: ClassTable
    candidates: Classes
    labelled: Scores
    labels: NDArray[np.int64]
    balance: float = 0.0

    def balanced(self) -> Classes:
        """(C,) which of the candidates are held to equal size: nobody knows how many images the unseen ones have."""
        return self.classes.unseen[self.candidates]

    def places(self) -> NDArray[np.int64]:
        """(n,) where the classes of the labelled images stand among the candidates."""
        return np.cumsum(self.candidates)[self.labels] - 1


class Refinement(ABC):
    """A map of scores, learned from a scored pool, that any image goes through by itself.

    Args:
        candidates: (L,) the C classes that an image can be taken for.
        **arrays: What was learned, by the names in `learns`.
    """

    # The arrays it learns, and how long their sides are: "C" candidates, "L" classes, "d" features, "one"; any other
    # letter is a length of its own.
    learns: ClassVar[Sides] = {}
    looks: ClassVar[bool] = True  # whether it looks at anything at all: if not, nothing is computed for it

    def __init__(self, candidates: Classes, **arrays: Scores) -> None:
        self.candidates = candidates
        self.arrays = arrays

    @classmethod
    @abstractmethod
    def fit(cls: type[Self], pool: ScoredPool) -> Self:
        """Learn from a pool."""

    @abstractmethod
    def scores(self, scores: Scores, features: Scores) -> Scores:
        """Scores (n, L) of a method and features (n, d) -> (n, L)."""

    def module(self) -> RefinementModule:
        """The same as `scores` in torch, for models that are exported.

        Raises:
            PrenError: If there is none.
        """
        raise PrenError(
            "export-unsupported",
            f"The refinement {type(self).__name__} has no module, so its models cannot be exported.",
        )

    @classmethod
    def restore(cls: type[Self], arrays: dict[str, Scores], candidates: Classes, d: int) -> Self:
        """The inverse of reading `arrays`.

        Raises:
            ValueError: If they are not those of such candidates and features of length d.
        """
        if arrays.keys() != cls.learns.keys():
            raise ValueError(f"the refinement holds {sorted(arrays)}, not {sorted(cls.learns)}")
        sizes = {"C": int(candidates.sum()), "L": len(candidates), "d": d, "one": 1}
        for name, sides in cls.learns.items():
            shape = arrays[name].shape
            if len(shape) != len(sides) or any(
                sizes.setdefault(side, length) != length for side, length in zip(sides, shape, strict=True)
            ):
                raise ValueError(f"{name} of the refinement cannot be of shape {shape}")
        return cls(candidates, **arrays)

    def _widened(self, refined: Scores, scores: Scores) -> Scores:
        """Refined scores (n, C) of the candidates as (n, L).

        Classes that are no candidates come after all candidates, in the order that the method's scores give them.
        """
        wide = np.empty_like(scores)
        wide[:, self.candidates] = refined
        if not self.candidates.all():
            others = scores[:, ~self.candidates]
            behind = refined.min(axis=1, keepdims=True) - 1.0
            wide[:, ~self.candidates] = behind + others - others.max(axis=1, keepdims=True)
        return wide


class RefinementModule(nn.Module):
    """A refinement in torch, in double precision; one writes `refined`.

    Args:
        candidates: (L,) the C classes that an image can be taken for.
    """

    columns: Tensor
    others: Tensor | None  # torch cannot save a tensor of nothing
    order: Tensor

    def __init__(self, candidates: Classes) -> None:
        super().__init__()
        columns, others = np.flatnonzero(candidates), np.flatnonzero(~candidates)
        self.register_buffer("columns", torch.from_numpy(columns))
        self.register_buffer("others", torch.from_numpy(others) if len(others) else None)
        self.register_buffer("order", torch.from_numpy(np.argsort(np.concatenate([columns, others]))))

    def refined(self, scores: Tensor, features: Tensor) -> Tensor:
        """Scores (n, C) of the candidates and features (n, d) -> (n, C)."""
        raise NotImplementedError

    def forward(self, scores: Tensor, features: Tensor) -> Tensor:
        """Scores (n, L) and features (n, d) -> (n, L); see `Refinement._widened`."""
        refined = self.refined(scores[:, self.columns], features)
        if self.others is None:
            return refined
        others = scores[:, self.others]
        behind = refined.amin(dim=1, keepdim=True) - 1.0
        wide = torch.cat([refined, behind + others - others.amax(dim=1, keepdim=True)], dim=1)
        return wide[:, self.order]


REFINEMENTS: Registry[type[Refinement]] = Registry("refinement")
register_refinement = REFINEMENTS.register


@register_refinement("none")
class Unrefined(Refinement):
    """Scores as they are."""

    looks = False

    @classmethod
    def fit(cls, pool: ScoredPool) -> Unrefined:
        """There is nothing to learn."""
        return cls(pool.candidates)

    def scores(self, scores: Scores, features: Scores) -> Scores:
        """The same (n, L)."""
        return scores


def blocks(images: int, classes: int) -> Iterator[slice]:
    """All images, so many at a time that (images, classes) arrays of them stay small."""
    size = max(1, BLOCK_NUMBERS // max(classes, 1))
    for start in range(0, images, size):
        yield slice(start, min(start + size, images))


def shares(scores: Scores, candidates: Classes) -> Scores:
    """How much an image is of each candidate by the method's scores (n, L): (n, C), rows of sum 1.

    Scores have no unit: an image's are brought to mean 0 and variance 1 first.
    """
    columns = np.flatnonzero(candidates)
    result = np.empty((len(scores), len(columns)))
    for block in blocks(*result.shape):
        centred = scores[block][:, columns]
        centred -= centred.mean(axis=1, keepdims=True)
        spread = centred.std(axis=1, keepdims=True)
        scaled = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
        result[block] = softmax(DECIDED * scaled, axis=1)
    return result


def squared_distances(x: Scores, centres: Scores) -> Scores:
    """‖x_i - c_j‖² (n, k) of x (n, d) and centres (k, d)."""
    squares: Scores = (x**2).sum(axis=1)[:, None] - 2 * x @ centres.T + (centres**2).sum(axis=1)
    return np.maximum(squares, 0.0, out=squares)  # of rounding
