"""Algorithm 1: train on the seen classes, then repeatedly on them and the latest pseudo-labels.

`progressive_training` is a generator that yields every round, so the caller can save, log, show progress and resume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pren.core.pseudo import PseudoLabels, SelectionRule


class Learner(Protocol):
    """The model that Algorithm 1 trains."""

    def train(self, pseudo: PseudoLabels, number: int) -> float:
        """Train round `number` on D_s ∪ D_pseudo; returns the mean loss. Round 0 is on D_s alone."""

    def score(self, candidates: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The scores (N, L) of the pool for a choice among the candidates (L,)."""


@dataclass(frozen=True, eq=False)
class Plan:
    """How many rounds there are, and which classes get pseudo-labels.

    Attributes:
        rounds: MaxIter.
        per_class: N_pseudo.
        unseen: (L,) True for U.
        first_rounds: GZSL: how many rounds give pseudo-labels to unseen classes only. None: all of them (ZSL).
    """

    rounds: int
    per_class: int
    unseen: NDArray[np.bool_]
    first_rounds: int | None

    def candidates(self, number: int) -> NDArray[np.bool_]:
        """(L,) the classes that get pseudo-labels in a round.

        In ZSL, and in the first rounds of GZSL, only unseen ones: against seen classes, they could get no pseudo-label
        at first, and then never would.
        """
        if self.first_rounds is None or number <= self.first_rounds:
            return self.unseen
        return np.ones_like(self.unseen)


@dataclass(frozen=True, eq=False)
class Round:
    """The result of a round (or an epoch, for methods with epochs).

    Attributes:
        number: 0 for the training on the seen classes, then 1 to MaxIter.
        of: The number of the last round.
        figures: Figures by name, for the history.
        pseudo: The pseudo-labels of this round; None for methods without them.
        labels: (N_pool,) the predicted classes from which these were chosen; None if the pool was not scored.
        kind: "round" or "epoch".
    """

    number: int
    of: int
    figures: Mapping[str, float]
    pseudo: PseudoLabels | None = None
    labels: NDArray[np.int64] | None = None
    kind: str = "round"


def progressive_training(
    learner: Learner, select: SelectionRule, plan: Plan, last: Round | None = None
) -> Iterator[Round]:
    """Run Algorithm 1.

    Args:
        learner: The network, its training data and the pool.
        select: Chooses the images of the pool that get a pseudo-label.
        plan: The rounds.
        last: Continue after this round; the learner must be in the state after it.

    Yields:
        Each round when it is finished.
    """
    if last is None:
        nothing = PseudoLabels.none()
        last = _round(0, plan, learner.train(nothing, 0), nothing, nothing)
        yield last
    before = last.pseudo or PseudoLabels.none()
    for number in range(last.number + 1, plan.rounds + 1):
        candidates = plan.candidates(number)
        pseudo = select(learner.score(candidates), candidates, plan.per_class, before, number / plan.rounds)
        yield _round(number, plan, learner.train(pseudo, number), pseudo, before)
        before = pseudo


def _round(number: int, plan: Plan, loss: float, pseudo: PseudoLabels, before: PseudoLabels) -> Round:
    figures = {"loss": loss, "pseudo_labels": len(pseudo), "changed": pseudo.changed_since(before)}
    return Round(number, plan.rounds, figures, pseudo)
