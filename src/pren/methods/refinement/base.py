"""The base class of refinements."""

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

DECIDED = 3.0  # the factor of scores, which have variance 1 for each input, before the softmax
BLOCK_NUMBERS = 2**23  # numbers (inputs x classes) in memory at once


@dataclass(frozen=True, eq=False)
class ScoredPool:
    """What a refinement learns from. Inputs of the pool that a person has labelled count as labelled.

    Attributes:
        scores: (N, L) of the method for the unlabelled pool, larger is better.
        features: (N, d) of the unlabelled pool, as the method sees it.
        classes: The L classes.
        candidates: (L,) which of them may be predicted.
        labelled: (n, d) features of labelled inputs of candidate classes; in ZSL, those that a person labelled.
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
        """(C,) which candidates are held to equal size: the unseen ones, whose sizes are not known."""
        return self.classes.unseen[self.candidates]

    def shares(self) -> Scores:
        """(N, C) the share of each candidate in each input; see `shares`."""
        columns = np.flatnonzero(self.candidates)
        result = np.empty((len(self.scores), len(columns)))
        for block in blocks(*result.shape):
            result[block] = on_arrays(shares, self.scores[block][:, columns])
        return result

    def places(self) -> NDArray[np.int64]:
        """(n,) the places of the labels among the candidates."""
        return np.cumsum(self.candidates)[self.labels] - 1


class Refinement(Formula, ABC):
    """A map of the scores of single inputs, learned from a scored pool: a torch module.

    Learned arrays have the sides "C" candidates, "L" classes, "d" features, "one" (1); other letters are free.

    Args:
        candidates: (L,) the C classes that may be predicted.
        **arrays: Learned arrays, by the names in `learns`.
    """

    changes_scores: ClassVar[bool] = True  # if not, it is left out
    log_shares: ClassVar[bool] = False  # as for `Method`

    columns: Tensor
    others: Tensor | None  # torch.export cannot save an empty buffer
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
        """The inverse of `arrays`, for candidates (L,) and features of length d.

        Raises:
            ValueError: If the arrays do not fit.
        """
        cls.check("refinement", arrays, C=int(candidates.sum()), L=len(candidates), d=d, one=1)
        return cls(candidates, **arrays)

    def widened(self, refined: Tensor, scores: Tensor) -> Tensor:
        """Refined scores (n, C) of the candidates as (n, L); other classes come last, in the order of `scores`."""
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
    """Slices of the inputs, so that (inputs, classes) arrays stay small."""
    size = max(1, BLOCK_NUMBERS // max(classes, 1))
    for start in range(0, images, size):
        yield slice(start, min(start + size, images))


def shares(scores: Tensor) -> Tensor:
    """The shares of the candidates by the method's scores (n, C): (n, C), rows of sum 1.

    Scores have no unit, so each input's are brought to mean 0 and variance 1 first.
    """
    centred = scores - scores.mean(dim=1, keepdim=True)
    spread = centred.square().mean(dim=1, keepdim=True).sqrt()
    scaled = centred / torch.where(spread > 0, spread, torch.ones_like(spread))
    return (DECIDED * scaled).softmax(dim=1)
