"""What labels of a person say about the names that are not checked yet.

A second fit, without these labels, shows what the method would have guessed. Where a person contradicts it more often
than the certainty of its names explains, its other names are less sure, too; where it was right, they are surer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.base import clone

from pren.core.pseudo import best_candidate
from pren.methods.base import Method
from pren.problem import Problem
from pren.training.processes import Fabric
from pren.trust.names import SPREAD, Names
from pren.trust.quiet import quietly

Vector = NDArray[np.float64]


class Corrections(BaseModel):
    """Labels of a person, beside what would have been guessed without them.

    Attributes:
        given: How many labels.
        contradicted: How many of them contradict the guess.
        renamed: Groups that have changed their name, as (guessed, right), sorted.
        surer: What this adds to the logit of the certainty of every name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    given: Annotated[int, Field(ge=0)]
    contradicted: Annotated[int, Field(ge=0)]
    renamed: tuple[tuple[str, str], ...]
    surer: float

    def sentence(self) -> str:
        """For people."""
        verb = "contradicts" if self.contradicted == 1 else "contradict"
        labels = "label" if self.given == 1 else "labels"
        said = f"{self.contradicted} of the {self.given} {labels} that you gave {verb} what was guessed without them"
        changed = ", ".join(f"{guessed} is {right}" for guessed, right in self.renamed)
        return f"{said}: {changed}." if changed else f"{said}."


def corrections_of(method: Method, problem: Problem, fabric: Fabric | None = None) -> Corrections | None:
    """Compare the labels of a person with what a fit without them guesses.

    Args:
        method: Fitted or not; it does not change.
        problem: With the labels.
        fabric: As for `Method.fit`.

    Returns:
        None if there are no such labels, or the method chooses no names.
    """
    places, given = problem.decided()
    if not len(places) or method.name_shares() is None:
        return None
    untold = replace(problem, given=None)
    with quietly():
        before = clone(method).fit(untold, fabric)
    labels = best_candidate(before.scores(untold.pool), problem.candidates())
    names = Names.of(before, labels, untold)
    assert names is not None
    guessed = labels[places]
    groups = [row for row in np.unique(guessed) if names.there[row]]
    said = {row: Counter(given[guessed == row].tolist()).most_common(1)[0][0] for row in groups}
    renamed = sorted(
        (problem.classes.names[row], problem.classes.names[said[row]]) for row in groups if said[row] != row
    )
    right = np.array([said[row] == row for row in groups], dtype=bool)
    return Corrections(
        given=len(given),
        contradicted=int((guessed != given).sum()),
        renamed=tuple(renamed),
        surer=how_much_surer(names.certainty()[groups], right),
    )


def how_much_surer(certainty: Vector, right: NDArray[np.bool_]) -> float:
    """What to add to the logits of all names, by what became of n of them.

    It is the likeliest shift δ if δ is normal with the deviation `SPREAD`: Σ (right - σ(logit c + δ)) = δ / SPREAD².

    Args:
        certainty: (n,) between 0 and 1, before they were checked.
        right: (n,) whether they were right.
    """
    if not len(certainty):
        return 0.0
    before = logit(certainty)

    def pull(shift: float) -> float:
        return float((right - expit(before + shift)).sum()) - shift / SPREAD**2

    farthest = len(right) * SPREAD**2
    return float(brentq(pull, -farthest, farthest))
