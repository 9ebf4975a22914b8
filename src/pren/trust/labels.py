"""The labels of a pool, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.problem import UNKNOWN, Problem, candidates_of
from pren.problem.inputs import Inputs, pieces
from pren.problem.scoring import top_classes
from pren.trust.assessment import Trust
from pren.trust.confidence import Reading

Vector = NDArray[np.float64]


class Labels(NamedTuple):
    """Labels of N inputs.

    Attributes:
        classes: (N,) rows of the class table; `UNKNOWN` where no label is sure enough.
        scores: (N,) of the label.
        confidence: (N,) from 0 to 1; NaN if it is not known.
        familiarity: (N,) from 0 to 1: near 0 an input looks like none of the classes; NaN if it is not known.
        runners_up: (N,) the best candidate other than the label; `UNKNOWN` if there is none.
        lead: (N,) the score of the best candidate minus that of the second.
        other_scores: (N,) of the runners-up; NaN if there is no other.
    """

    classes: NDArray[np.int64]
    scores: Vector
    confidence: Vector
    familiarity: Vector
    runners_up: NDArray[np.int64]
    lead: Vector
    other_scores: Vector


def label_pool(score: Callable[[Inputs], Vector], problem: Problem, trust: Trust | None) -> Labels:
    """Label the pool of a problem in pieces, to save memory.

    Args:
        score: Scores (n, L) of n inputs, by the fitted method.
        problem: Labels that a person has given are kept, with confidence 1.
        trust: How far its labels can be trusted; None if it is not known.
    """
    given = np.full(len(problem.pool), UNKNOWN) if problem.given is None else problem.given
    parts, start = [], 0
    for piece in pieces(problem.pool):
        parts.append(_labelled(score(piece), piece, given[start : start + len(piece)], problem, trust))
        start += len(piece)
    return Labels(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _labelled(
    scores: Vector, inputs: Inputs, given: NDArray[np.int64], problem: Problem, trust: Trust | None
) -> Labels:
    """Label n inputs by their scores (n, L), and by the classes (n,) that a person has given."""
    best, _ = top_classes(scores, problem.classes, candidates_of(problem.setting), 2)
    reading = Reading.of(scores, problem.classes, problem.candidates())
    confidence, familiarity = np.full((2, len(scores)), np.nan)
    if trust is not None:
        familiarity = trust.familiar(inputs)
        confidence = trust.sure_of(reading, familiarity)
    decided = given != UNKNOWN
    classes = np.where(decided, given, best[:, 0])
    others = best[:, 1] if best.shape[1] > 1 else np.full(len(scores), UNKNOWN)
    runners_up = np.where(classes == best[:, 0], others, best[:, 0])
    other_scores = np.take_along_axis(scores, runners_up[:, None], axis=1)[:, 0]
    return Labels(
        classes=classes,
        scores=np.take_along_axis(scores, classes[:, None], axis=1)[:, 0],
        confidence=np.where(decided, 1.0, confidence),
        familiarity=familiarity,
        runners_up=runners_up,
        lead=reading.lead,
        other_scores=np.where(runners_up == UNKNOWN, np.nan, other_scores),
    )


def only_sure(labels: Labels, problem: Problem, trust: Trust, min_accuracy: float) -> Labels:
    """Keep so many labels that a share of `min_accuracy` of them is right; given labels stay."""
    kept = trust.reaches(min_accuracy, labels.confidence)
    kept[problem.decided()[0]] = True
    return labels._replace(classes=np.where(kept, labels.classes, UNKNOWN))
