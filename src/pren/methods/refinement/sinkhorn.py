"""Sinkhorn's iterations: offsets of log-densities that give classes equal shares of the inputs."""

from __future__ import annotations

import numpy as np

from pren.methods.refinement.base import Classes, Scores, blocks

ITERATIONS = 5  # with a warm start


def log_masses(densities: Scores, offsets: Scores) -> Scores:
    """log Σ_i softmax(densities_i + offsets) (C,), of densities (N, C) and offsets (C,)."""
    total = np.zeros(len(offsets))
    for block in blocks(*densities.shape):
        raised = densities[block] + offsets
        raised -= raised.max(axis=1, keepdims=True)
        np.exp(raised, out=raised)
        total += (1 / raised.sum(axis=1)) @ raised
    # A class without any mass comes nearer in every iteration.
    masses: Scores = np.log(np.maximum(total, np.finfo(np.float64).tiny))
    return masses


def even_offsets(densities: Scores, balanced: Classes, balance: float, start: Scores) -> tuple[Scores, Scores]:
    """Offsets (C,) that draw the balanced classes towards equal shares; those of the others are 0.

    They are `balance` times the potentials, which would make shares equal, plus a constant, so that the balanced
    classes together keep their share.

    Args:
        densities: (N, C).
        balanced: (C,) which classes.
        balance: From 0 to 1.
        start: (C,) potentials of similar densities.

    Returns:
        The offsets, and the potentials.
    """
    whole = balanced.all()
    share = np.log(len(densities)) if whole else _log_share(densities, np.zeros(len(balanced)), balanced)
    potentials = start.copy()
    for _ in range(ITERATIONS):
        potentials[balanced] += share - np.log(balanced.sum()) - log_masses(densities, potentials)[balanced]
    offsets = balance * potentials
    for _ in range(0 if whole else ITERATIONS):
        offsets[balanced] += share - _log_share(densities, offsets, balanced)
    return offsets, potentials


def _log_share(densities: Scores, offsets: Scores, group: Classes) -> float:
    """The logarithm of the mass of a group of classes (C,)."""
    return float(np.logaddexp.reduce(log_masses(densities, offsets)[group]))
