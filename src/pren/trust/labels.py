"""The labels of a pool, with all that is known about each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.problem import UNKNOWN, Problem
from pren.scoring import best_candidate
from pren.trust.assessment import Trust

Vector = NDArray[np.float64]


class Labels(NamedTuple):
    """Labels of N images.

    Attributes:
        classes: (N,) rows of the class table; `UNKNOWN` where no label is sure enough.
        scores: (N,) of the best candidate.
        confidence: (N,) from 0 to 1; NaN if nobody knows.
        familiarity: (N,) from 0 to 1: near 0 an image looks like none of the classes; NaN if nobody knows.
    """

    classes: NDArray[np.int64]
    scores: Vector
    confidence: Vector
    familiarity: Vector


def label_pool(scores: Vector, problem: Problem, trust: Trust | None) -> Labels:
    """Label the pool of a problem.

    Args:
        scores: (N_pool, L) of the fitted method.
        problem: A label that a person has given stands as it is, and is sure.
        trust: How far its labels can be trusted; None if nobody knows.
    """
    classes = best_candidate(scores, problem.candidates())
    confidence, familiarity = np.full((2, len(classes)), np.nan)
    if trust is not None:
        familiarity = trust.familiar(problem.pool)
        confidence = trust.sure(scores, problem.classes, problem.setting, familiarity)
    places, given = problem.decided()
    classes[places], confidence[places] = given, 1.0
    best = np.take_along_axis(scores, classes[:, None], axis=1)[:, 0]
    return Labels(classes, best, confidence, familiarity)


def only_sure(labels: Labels, problem: Problem, trust: Trust, precision: float) -> Labels:
    """The same with so many left out that of the others a share of `precision` is right; given ones stay."""
    kept = trust.reaches(precision, labels.confidence)
    kept[problem.decided()[0]] = True
    return labels._replace(classes=np.where(kept, labels.classes, UNKNOWN))
