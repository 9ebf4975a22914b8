"""Shares of the candidate classes, for methods whose scores are logarithms of shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from pren.foundation.errors import PrenError
from pren.methods.base import Method
from pren.methods.preparation import Matrix
from pren.methods.registry import METHODS
from pren.problem import candidates_of
from pren.problem.inputs import Array, Inputs


def predict_proba(method: Method, inputs: Inputs | Array, among: str | None) -> Matrix:
    """(N, L), see `Method.predict_proba`."""
    method._check_fitted()
    candidates = method.classes_.among(among or candidates_of(method.setting_))
    _check(method, candidates)
    scores = method.scores(inputs)
    shares = np.zeros_like(scores)
    shares[:, candidates] = softmax(scores[:, candidates], axis=1)
    return shares


def _check(method: Method, candidates: NDArray[np.bool_]) -> None:
    """Refuse scores that are no logarithms of shares of the candidates (L,)."""
    refinement = method.refinement_
    if not refinement.changes_scores and not method.log_shares:
        known = ", ".join(name for name, entry in METHODS.items() if entry.method.log_shares)
        raise PrenError("no-shares", f"{method.name} has scores but no shares: take one of {known}.")
    if refinement.changes_scores and not refinement.log_shares:
        raise PrenError("no-shares", f"refinement={method.refinement} gives no shares: take none or soft-kmeans.")
    if refinement.changes_scores and (candidates & ~refinement.candidates).any():
        raise PrenError("no-shares", f"refinement={method.refinement} knows the unseen classes only: leave among out.")
