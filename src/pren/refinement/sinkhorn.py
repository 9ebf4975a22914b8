"""Sinkhorn's iterations: what is added to log-densities so that classes get equal shares of the images."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from pren.refinement.base import Classes, Scores, blocks

ITERATIONS = 5  # with a warm start


def log_masses(densities: Scores, offsets: Scores) -> Scores:
    """log Σ_i softmax(densities_i + offsets) (C,), of densities (N, C) and offsets (C,)."""
    total: Scores = np.full(len(offsets), -np.inf)
    for block in blocks(*densities.shape):
        raised = densities[block] + offsets
        raised -= logsumexp(raised, axis=1, keepdims=True)
        total = np.logaddexp(total, logsumexp(raised, axis=0))
    return total


def potentials(densities: Scores, balanced: Classes, start: Scores) -> Scores:
    """Offsets (C,) with which the balanced classes (C,) get equal shares; those of the others are 0.

    Together the balanced classes keep what they have without offsets.

    Args:
        densities: (N, C).
        balanced: (C,) which classes.
        start: (C,) where to start from: the potentials of similar densities.
    """
    wanted = _log_group(densities, np.zeros(len(balanced)), balanced) - np.log(balanced.sum())
    offsets = start.copy()
    for _ in range(ITERATIONS):
        offsets[balanced] += wanted - log_masses(densities, offsets)[balanced]
    return offsets


def with_share_kept(densities: Scores, balanced: Classes, offsets: Scores) -> Scores:
    """Offsets (C,) moved alike for all balanced classes, so that together they keep what they have without offsets."""
    if balanced.all():
        return offsets
    wanted = _log_group(densities, np.zeros(len(balanced)), balanced)
    moved = offsets.copy()
    for _ in range(ITERATIONS):
        moved[balanced] += wanted - _log_group(densities, moved, balanced)
    return moved


def _log_group(densities: Scores, offsets: Scores, group: Classes) -> float:
    return float(logsumexp(log_masses(densities, offsets)[group]))
