"""From a method's scores to labels, the same for every method: γ, the best classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pren.problem import ClassTable, Setting

Scores = NDArray[np.float64]


def calibrated(scores: Scores, classes: ClassTable, setting: Setting, gamma: float) -> Scores:
    """Calibrated stacking: in GZSL, γ is taken off every seen class (N, L)."""
    return scores - gamma * classes.seen if setting == "gzsl" else scores


def top_classes(scores: Scores, classes: ClassTable, among: str, top: int) -> tuple[NDArray[np.int64], Scores]:
    """The best candidate classes of every image, best first.

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
