"""What a refinement is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pren.foundation.registry import Registry
from pren.methods.formulas import Formula, on_arrays
from pren.problem import ClassTable

Scores = NDArray[np.float64]
Classes = NDArray[np.bool_]
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
        """(C,) which of the candidates are held to equal size: how many images the unseen ones have is not known."""
        return self.classes.unseen[self.candidates]

    def shares(self) -> Scores:
        """(N, C) how much each image is of each candidate by the method's scores; see `shares`."""
        columns = np.flatnonzero(self.candidates)
        result = np.empty((len(self.scores), len(columns)))
        for block in blocks(*result.shape):
            result[block] = on_arrays(shares, self.scores[block][:, columns])
        return result

    def places(self) -> NDArray[np.int64]:
        """(n,) where the classes of the labelled images stand among the candidates."""
        return np.cumsum(self.candidates)[self.labels] - 1


class Refinement(Formula, ABC):
    """A map of scores, learned from a scored pool, that any image goes through by itself: a torch module.

    What it learns has the sides "C" candidates, "L" classes, "d" features, "one"; any other letter is a length of its
    own.

    Args:
        candidates: (L,) the C classes that an image can be taken for.
        **arrays: What was learned, by the names in `learns`.
    """

    changes_scores: ClassVar[bool] = True  # if not, nothing is computed for it
    log_shares: ClassVar[bool] = False  # as for `Method`

    columns: Tensor
    others: Tensor | None  # torch cannot save a tensor of nothing
    order: Tensor

    def __init__(self, candidates: Classes, **arrays: Scores) -> None:
        super().__init__(**arrays)
        self.candidates = candidates
        columns, others = np.flatnonzero(candidates), np.flatnonzero(~candidates)
        self.register_buffer("columns", torch.from_numpy(columns))
        self.register_buffer("others", torch.from_numpy(others) if len(others) else None)
        self.register_buffer("order", torch.from_numpy(np.argsort(np.concatenate([columns, others]))))

    @classmethod
    @abstractmethod
    def fit(cls: type[Self], pool: ScoredPool) -> Self:
        """Learn from a pool."""

    @abstractmethod
    def forward(self, scores: Tensor, features: Tensor) -> Tensor:
        """Scores (n, L) of a method and features (n, d), both in double precision -> (n, L)."""

    @classmethod
    def restore(cls: type[Self], arrays: dict[str, Scores], candidates: Classes, d: int) -> Self:
        """The inverse of reading `arrays`.

        Raises:
            ValueError: If they are not those of such candidates and features of length d.
        """
        cls.check("refinement", arrays, C=int(candidates.sum()), L=len(candidates), d=d, one=1)
        return cls(candidates, **arrays)

    def widened(self, refined: Tensor, scores: Tensor) -> Tensor:
        """Refined scores (n, C) of the candidates as (n, L).

        Classes that are no candidates come after all candidates, in the order that the method's scores give them.
        """
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

    changes_scores = False

    @classmethod
    def fit(cls, pool: ScoredPool) -> Unrefined:
        """There is nothing to learn."""
        return cls(pool.candidates)

    def forward(self, scores: Tensor, features: Tensor) -> Tensor:
        """The same (n, L)."""
        return scores


def blocks(images: int, classes: int) -> Iterator[slice]:
    """All images, so many at a time that (images, classes) arrays of them stay small."""
    size = max(1, BLOCK_NUMBERS // max(classes, 1))
    for start in range(0, images, size):
        yield slice(start, min(start + size, images))


def shares(scores: Tensor) -> Tensor:
    """How much an image is of each candidate by the method's scores (n, C) of these: (n, C), rows of sum 1.

    Scores have no unit: an image's are brought to mean 0 and variance 1 first.
    """
    centred = scores - scores.mean(dim=1, keepdim=True)
    spread = centred.square().mean(dim=1, keepdim=True).sqrt()
    scaled = centred / torch.where(spread > 0, spread, torch.ones_like(spread))
    return (DECIDED * scaled).softmax(dim=1)
