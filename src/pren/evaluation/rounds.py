"""What the answers say of a round. It is noted, and nothing learns from it."""

from __future__ import annotations

from statistics import fmean
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pren.problem import Answers, Setting

Rows = NDArray[np.int64]


class Chosen(Protocol):
    """Images of the pool, and the class that each was given."""

    @property
    def images(self) -> Rows:
        """(n,) places in the pool."""

    @property
    def labels(self) -> Rows:
        """(n,) rows of the class table."""


def round_figures(pseudo: Chosen | None, labels: Rows | None, answers: Answers, setting: Setting) -> dict[str, float]:
    """How good pseudo-labels were, and the labels that they were chosen from.

    Args:
        pseudo: What a round has learned from.
        labels: (N_pool,) what the pool was taken for before it.
        answers: Images without one do not count.
        setting: In "gzsl" the first rounds look at unseen classes only, so there is no Top-1.

    Returns:
        "precision" of the pseudo-labels, and "top1_before" the round; what is not known is left out.
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
