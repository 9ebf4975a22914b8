"""GFZSL (Verma & Rai 2017): each class is a Gaussian whose parameters are predicted from its signature."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.kernel_ridge import KernelRidge
from torch import Tensor, nn

from pren.methods.base import SCALINGS, Method
from pren.methods.class_statistics import class_statistics
from pren.methods.formulas import DiagonalGaussians, on_arrays
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.space import Real
from pren.problem import Problem

LARGEST_LOG = 50.0  # of a predicted variance, so that it stays finite
LEAST_MASS = 1e-8  # a component with less mass does not move


class GFZSL(Method):
    """p(x|c) = N(x; μ_c, diag σ²_c); μ and log σ² of unseen classes by kernel ridge, k(a, b) = (1 + a·b)².

    Transductive: from these predictions, EM fits the mixture of the candidates' Gaussians to the pool. Scores are the
    log-densities of its E-step. In GZSL the mixture has a component for every class; those of seen classes keep the
    statistics of their labelled inputs.

    Written from the published description and notes on the authors' code. Choices made here: the ridge works on
    deviations from the seen classes' average (the code's very strong ridge would otherwise draw log σ² to 0, whatever
    the unit of a feature); components have equal weights (the code learns weights and does not use them at the end);
    small variances are raised to a floor in the data's own unit, in the M-step, where that is still the exact maximum,
    and in the inductive method (the code adds 0.05 to every entry of the covariance, off the diagonal too).

    Image arrays become flat pixels. Reference: "A simple exponential family framework for zero-shot learning", ECML
    2017.

    Attributes:
        means_: (L, d) μ.
        variances_: (L, d) σ².
        likelihoods_: The mean log-likelihood of a pool input before every step of EM; not saved.
    """

    name: ClassVar[str] = "gfzsl"
    log_shares: ClassVar[bool] = True

    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)
    mean_reg: float = param(1.0, "The ridge of μ.", gt=0, search=Real(1e-3, 1e2, log=True))
    variance_reg: float = param(1e3, "The ridge of log σ².", gt=0, search=Real(1e-1, 1e8, log=True))
    variance_floor: float = param(
        1.0,
        "No variance is smaller than this times the average variance within a seen class.",
        gt=0,
        search=Real(1e-2, 1e1, log=True),
    )
    transductive: bool = param(True, "Whether EM adapts the unseen classes to the pool.")
    iterations: int = param(100, "The most steps of EM.", ge=0)
    tolerance: float = param(1e-3, "EM ends when a step adds less to the mean log-likelihood of an input.", ge=0)

    means_: Matrix = learned("L", "d")
    variances_: Matrix = learned("L", "d")

    def _fit(self, problem: Problem) -> None:
        table = problem.classes
        means, variances = class_statistics(self._features(problem.train), problem.labels, len(table))
        seen, unseen = table.signatures[table.seen], table.signatures[table.unseen]
        means[table.unseen] = kernel_ridge(seen, means[table.seen], unseen, self.mean_reg)
        floor = self.variance_floor * (float(variances[table.seen].mean()) or 1.0)  # each class may have one input
        variances = np.maximum(variances, floor)
        logs = kernel_ridge(seen, np.log(variances[table.seen]), unseen, self.variance_reg)
        variances[table.unseen] = np.exp(np.clip(logs, np.log(floor), max(np.log(floor), LARGEST_LOG)))
        self.likelihoods_: list[float] = []
        if self.transductive:
            mixture = np.flatnonzero(problem.candidates())
            means[mixture], variances[mixture], self.likelihoods_ = expectation_maximisation(
                self._features(problem.pool),
                means[mixture],
                variances[mixture],
                table.unseen[mixture],
                floor,
                self.iterations,
                self.tolerance,
            )
        self.variances_ = variances
        self.means_ = means

    def _scorer(self) -> nn.Module:
        return DiagonalGaussians(self.means_, self.variances_)

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        if not (self.variances_ > 0).all():
            raise ValueError("variances must be positive")


def kernel_ridge(known: Matrix, values: Matrix, wanted: Matrix, ridge: float) -> Matrix:
    """Predict values (u, d) at signatures `wanted` (u, m) from values (n, d) at `known` (n, m)."""
    average = values.mean(axis=0)
    kernel = KernelRidge(alpha=ridge, kernel="poly", degree=2, gamma=1.0, coef0=1.0)
    carried: Matrix = kernel.fit(known, values - average).predict(wanted) + average
    return carried


def expectation_maximisation(
    X: Matrix,
    means: Matrix,
    variances: Matrix,
    free: NDArray[np.bool_],
    floor: float,
    iterations: int,
    tolerance: float,
) -> tuple[Matrix, Matrix, list[float]]:
    """Fit a mixture of diagonal Gaussians with equal weights.

    Args:
        X: (n, d).
        means: (K, d) to start from.
        variances: (K, d) to start from.
        free: (K,) which components may move.
        floor: Their least variance.
        iterations: The most steps.
        tolerance: EM ends when a step adds less to the mean log-likelihood.

    Returns:
        Means, variances, and the mean log-likelihood before every step, which never falls.
    """
    means, variances = means.copy(), variances.copy()
    centre = X.mean(axis=0)
    shifted = X - centre
    squares = shifted**2
    likelihoods: list[float] = []
    for _ in range(iterations):
        densities = on_arrays(DiagonalGaussians(means, variances), X)
        likelihoods.append(float((np.logaddexp.reduce(densities, axis=1) - np.log(len(means))).mean()))
        if len(likelihoods) > 1 and likelihoods[-1] - likelihoods[-2] < tolerance:
            break
        shares = softmax(densities, axis=1)
        mass = shares.sum(axis=0)
        moving = free & (mass > LEAST_MASS)
        weights = (shares[:, moving] / mass[moving]).T
        moved = weights @ shifted
        means[moving] = moved + centre
        variances[moving] = np.maximum(weights @ squares - moved**2, floor)
    return means, variances, likelihoods
