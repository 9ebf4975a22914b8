"""From scores to labels, the same for every method: γ, the best classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pren.foundation.errors import PrenError
from pren.problem.class_table import ClassTable
from pren.problem.inputs import Inputs
from pren.problem.problem import Problem, Setting

Scores = NDArray[np.float64]


class Scoring(Protocol):
    """Anything that scores inputs, such as a fitted method; columns are in the order of its class table."""

    classes_: ClassTable

    def scores(self, inputs: Inputs) -> Scores:
        """(N, L), larger is better."""
        ...


def scorer(model: Scoring, problem: Problem) -> Callable[[Inputs], Scores]:
    """Scores (n, L) of a model, with columns in the order of a problem's classes; `PrenError` if these differ."""
    place = {name: column for column, name in enumerate(model.classes_.names)}
    if place.keys() != set(problem.classes.names):
        raise PrenError("model-other", "The model and the data have different classes: use the model of this run.")
    columns = [place[name] for name in problem.classes.names]
    return lambda inputs: model.scores(inputs)[:, columns]


def calibrated(scores: Scores, classes: ClassTable, setting: Setting, gamma: float) -> Scores:
    """Calibrated stacking: in GZSL, subtract γ from the scores (N, L) of seen classes."""
    return scores - gamma * classes.seen if setting == "gzsl" else scores


def top_classes(scores: Scores, classes: ClassTable, among: str, top: int) -> tuple[NDArray[np.int64], Scores]:
    """The best candidate classes of every input, best first.

    Args:
        scores: (N, L).
        classes: The L classes.
        among: "unseen", "seen" or "all".
        top: How many; fewer if there are fewer candidates.

    Returns:
        (N, top) rows of the class table and (N, top) their scores.
    """
    candidates = np.flatnonzero(classes.among(among))
    order = np.argsort(-scores[:, candidates], axis=1, kind="stable")[:, :top]
    return candidates[order], np.take_along_axis(scores[:, candidates], order, axis=1)
