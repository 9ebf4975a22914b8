"""Figures of a round, by the answers. Nothing learns from them."""

from __future__ import annotations

from statistics import fmean
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pren.problem import Answers, Setting

Rows = NDArray[np.int64]


class Chosen(Protocol):
    """Inputs of the pool, and the class that each got."""

    @property
    def images(self) -> Rows:
        """(n,) places in the pool."""

    @property
    def labels(self) -> Rows:
        """(n,) rows of the class table."""


def round_figures(pseudo: Chosen | None, labels: Rows | None, answers: Answers, setting: Setting) -> dict[str, float]:
    """How good pseudo-labels are, and the labels that they were chosen from.

    Args:
        pseudo: What the round has learned from.
        labels: (N_pool,) of the pool, before the round.
        answers: Inputs without an answer do not count.
        setting: In "gzsl" there is no Top-1, because the first rounds have unseen classes only.

    Returns:
        "precision" of the pseudo-labels, and "top1_before" the round, where they are known.
    """
    found, truth = {}, answers.labels
    if pseudo is not None:
        known = answers.known[pseudo.images]
        if known.any():
            found["precision"] = float((truth[pseudo.images] == pseudo.labels)[known].mean())
    if labels is not None and setting == "zsl" and answers.known.any():
        right = labels == truth
        found["top1_before"] = fmean(float(right[truth == row].mean()) for row in np.unique(truth[answers.known]))
    return found
