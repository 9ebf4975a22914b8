"""Linear classifiers for SynC, ConSE and DCL, fitted by L-BFGS: min_W loss(X Wᵀ, y) + reg / 2 ‖W‖²."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from pren.methods.preparation import Matrix

Labels = NDArray[np.int64]
Loss = Callable[[Matrix, Labels], tuple[float, Matrix]]  # (n, C) scores and (n,) labels -> loss, (n, C) gradient


def fit_classifiers(X: Matrix, labels: Labels, count: int, loss: Loss, reg: float, iterations: int) -> Matrix:
    """The weights (C, d) of C classifiers.

    Args:
        X: (n, d) features.
        labels: (n,) from 0 to C - 1.
        count: C.
        loss: One of the losses below.
        reg: The weight of ‖W‖² / 2.
        iterations: The most steps of L-BFGS.
    """

    def objective(flat: Matrix) -> tuple[float, Matrix]:
        W = flat.reshape(count, X.shape[1])
        value, gradient = loss(X @ W.T, labels)
        return value + reg / 2 * float(flat @ flat), (gradient.T @ X).ravel() + reg * flat

    start = np.zeros(count * X.shape[1])
    options = {"maxiter": iterations, "maxfun": 10 * iterations, "ftol": 1e-10, "gtol": 1e-7}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    weights: Matrix = found.x.reshape(count, X.shape[1])
    return weights


def cross_entropy(scores: Matrix, labels: Labels) -> tuple[float, Matrix]:
    """The mean of -log p(y | x), p the softmax of the scores."""
    log_p = log_softmax(scores, axis=1)
    picked = np.arange(len(scores)), labels
    gradient = np.exp(log_p)
    gradient[picked] -= 1
    return -float(log_p[picked].mean()), gradient / len(scores)


def one_versus_other(scores: Matrix, labels: Labels) -> tuple[float, Matrix]:
    """The mean over inputs and classes of max(0, 1 - t F)², t = 1 for the right class and -1 for all others."""
    return weighted_one_versus_other(np.full(len(scores), 1 / scores.size))(scores, labels)


def weighted_one_versus_other(weights: Matrix) -> Loss:
    """The sum over inputs and classes of w max(0, 1 - t F)², with the weights w (n,) of the inputs."""

    def loss(scores: Matrix, labels: Labels) -> tuple[float, Matrix]:
        t = np.full(scores.shape, -1.0)
        t[np.arange(len(scores)), labels] = 1.0
        slack = np.maximum(0.0, 1 - t * scores)
        weighted = weights[:, None] * slack
        return float(np.vdot(weighted, slack)), -2 * t * weighted

    return loss


def crammer_singer(margins: Matrix) -> Loss:
    """The mean of max(0, max over c≠y of Δ(y, c) + F(x, c) - F(x, y))², with margins Δ (C, C)."""

    def loss(scores: Matrix, labels: Labels) -> tuple[float, Matrix]:
        picked = np.arange(len(scores)), labels
        lead = margins[labels] + scores - scores[picked][:, None]
        lead[picked] = 0.0
        slack = lead.max(axis=1)
        worst = lead == slack[:, None]  # equally bad classes share the gradient; at the start all are
        gradient = worst * (2 * slack / worst.sum(axis=1) / len(scores))[:, None]
        gradient[picked] -= 2 * slack / len(scores)  # 0 where the right class leads
        return float(np.square(slack).mean()), gradient

    return loss
