"""What a refinement is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pren.problem import ClassTable
from pren.registry import Registry

Scores = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoredPool:
    """All that a refinement may look at; no label of a pool image is in it.

    Attributes:
        scores: (N, L) as the method gives them, larger is better.
        features: (N, d) the pool as the method sees it.
        classes: The L classes.
        candidates: (L,) those that an image can be taken for.
    """

    scores: Scores
    features: NDArray[np.float64]
    classes: ClassTable
    candidates: NDArray[np.bool_]


Refinement = Callable[[ScoredPool], Scores]
REFINEMENTS: Registry[Refinement] = Registry("refinement")
register_refinement = REFINEMENTS.register


@register_refinement("none")
def leave(pool: ScoredPool) -> Scores:
    """Leave the scores as they are."""
    return pool.scores
