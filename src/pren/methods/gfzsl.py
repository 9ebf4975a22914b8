"""GFZSL (Verma & Rai 2017): every class a Gaussian whose parameters are predicted from its signature."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import softmax
from torch import Tensor

from pren.errors import PrenError
from pren.inputs import Inputs, chunks
from pren.methods.base import Method
from pren.methods.features import Matrix, Scaler, Scaling, flat, width
from pren.methods.params import NotNegative, Rate
from pren.methods.saved import matrix
from pren.methods.space import Choice, Real, Space
from pren.problem import Problem, candidates_of

LARGEST_LOG = 50.0  # of a predicted variance: e^50 is as good as infinite, and still a number
LEAST_MASS = 1e-8  # a component with fewer images than that stays where it is


class GFZSL(Method):
    """p(x|c) = N(x; μ_c, diag σ²_c); μ and log σ² of unseen classes by kernel ridge, k(a, b) = (1 + a·b)².

    Transductive: EM for the mixture of the candidates' Gaussians on the pool, from these predictions. Its E-step and
    the final scores are the same log-densities, so the pool is classified as the mixture explains it. In GZSL the
    mixture has a component for every class; those of seen classes stay at the statistics of their labelled images.

    Written from the published description and notes on the authors' code, with these choices of ours: the ridge works
    on deviations from the seen classes' average (the code's very strong ridge would otherwise draw log σ² to 0,
    whatever the unit of a feature); components have equal weights throughout (the code learns weights and leaves them
    out at the end); small variances are raised to a floor in the data's own unit, in the M-step, where that is still
    the exact maximum, and in the inductive method (the code adds 0.05 to every entry of the covariance, off the
    diagonal too).

    Images are taken as flat pixels. Reference: "A simple exponential family framework for zero-shot learning",
    ECML 2017.

    Args:
        features: How to scale features.
        mean_reg: The ridge of μ.
        variance_reg: The ridge of log σ².
        variance_floor: No variance is smaller than this times the average variance within a seen class.
        transductive: Whether EM adapts the unseen classes to the pool.
        iterations: At most so many steps of EM.
        tolerance: EM ends when a step adds less to the mean log-likelihood of an image.
        gamma: GZSL: taken off the scores of seen classes.

    Attributes:
        means_: (L, d) μ.
        variances_: (L, d) σ².
        likelihoods_: The mean log-likelihood of a pool image before every step of EM; not saved.
    """

    name: ClassVar[str] = "gfzsl"
    learned: ClassVar[str] = "means_"
    space: ClassVar[Space] = {
        "features": Choice(("raw", "l2", "standard", "minmax")),
        "mean_reg": Real(1e-3, 1e2, log=True),
        "variance_reg": Real(1e-1, 1e8, log=True),
        "variance_floor": Real(1e-2, 1e1, log=True),
    }

    def __init__(
        self,
        features: Scaling = "l2",
        mean_reg: Rate = 1.0,
        variance_reg: Rate = 1e3,
        variance_floor: Rate = 1.0,
        transductive: bool = True,
        iterations: NotNegative = 100,
        tolerance: Annotated[float, Field(ge=0)] = 1e-3,
        gamma: float = 0.0,
    ) -> None:
        self.features = features
        self.mean_reg = mean_reg
        self.variance_reg = variance_reg
        self.variance_floor = variance_floor
        self.transductive = transductive
        self.iterations = iterations
        self.tolerance = tolerance
        self.gamma = gamma

    def _fit(self, problem: Problem) -> None:
        width(problem.train, "GFZSL")
        table = problem.classes
        self.scaler_ = Scaler.fit(self.features, problem.train)
        means, variances = class_statistics(self.scaler_(problem.train), problem.labels, len(table))
        seen, unseen = table.signatures[table.seen], table.signatures[table.unseen]
        means[table.unseen] = kernel_ridge(seen, means[table.seen], unseen, self.mean_reg)
        floor = self.variance_floor * (float(variances[table.seen].mean()) or 1.0)  # each class may have one image
        variances = np.maximum(variances, floor)
        logs = kernel_ridge(seen, np.log(variances[table.seen]), unseen, self.variance_reg)
        variances[table.unseen] = np.exp(np.clip(logs, np.log(floor), max(np.log(floor), LARGEST_LOG)))
        self.likelihoods_: list[float] = []
        if self.transductive:
            mixture = np.flatnonzero(table.among(candidates_of(problem.setting)))
            means[mixture], variances[mixture], self.likelihoods_ = expectation_maximisation(
                self.scaler_(problem.pool),
                means[mixture],
                variances[mixture],
                table.unseen[mixture],
                floor,
                self.iterations,
                self.tolerance,
            )
        self.variances_ = variances
        self.means_ = means

    def _scores(self, inputs: Inputs) -> Matrix:
        parts = [
            log_densities(self.scaler_.transform(flat(chunk)), self.means_, self.variances_) for chunk in chunks(inputs)
        ]
        return self._calibrated(np.concatenate(parts))

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors = {"means": torch.from_numpy(self.means_), "variances": torch.from_numpy(self.variances_)}
        return {**tensors, **self.scaler_.state()}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        d = int(np.prod(self.sample_shape_))
        means, variances = (matrix(tensors, name, len(self.classes_), d) for name in ("means", "variances"))
        if not (variances > 0).all():
            raise ValueError("variances must be positive")
        self.scaler_ = Scaler.restore(self.features, tensors, d)
        self.variances_ = variances
        self.means_ = means


def class_statistics(X: Matrix, labels: NDArray[np.int64], count: int) -> tuple[Matrix, Matrix]:
    """Mean and variance (count, d) of the images of every class; those of a class without images are 0."""
    members = np.zeros((len(X), count))
    members[np.arange(len(X)), labels] = 1.0
    sizes = np.maximum(members.sum(axis=0), 1.0)[:, None]
    means = members.T @ X / sizes
    return means, members.T @ (X - means[labels]) ** 2 / sizes


def kernel_ridge(known: Matrix, values: Matrix, wanted: Matrix, ridge: float) -> Matrix:
    """Values (n, d) at the signatures `known` (n, m), carried over to `wanted` (u, m): (u, d)."""
    average = values.mean(axis=0)
    K = (1 + known @ known.T) ** 2
    try:
        alpha = cho_solve(cho_factor(K + ridge * np.eye(len(K))), values - average)
    except LinAlgError as error:
        raise PrenError("GFZSL cannot solve its equations: take a larger mean_reg and variance_reg.") from error
    carried: Matrix = (1 + wanted @ known.T) ** 2 @ alpha + average
    return carried


def log_densities(X: Matrix, means: Matrix, variances: Matrix) -> Matrix:
    """log N(x; μ_k, diag σ²_k) for X (n, d) and K Gaussians (K, d): (n, K), as two products."""
    centre = means.mean(axis=0)  # squares of large numbers would cost digits
    X, means = X - centre, means - centre
    precisions = 1 / variances
    squares = X**2 @ precisions.T - 2 * X @ (means * precisions).T + (means**2 * precisions).sum(axis=1)
    densities: Matrix = -0.5 * (squares + np.log(2 * np.pi * variances).sum(axis=1))
    return densities


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
        floor: No variance of theirs is smaller.
        iterations: At most so many steps.
        tolerance: Ends when a step adds less to the mean log-likelihood.

    Returns:
        Means, variances, and the mean log-likelihood before every step, which never falls.
    """
    means, variances = means.copy(), variances.copy()
    centre = X.mean(axis=0)
    shifted = X - centre
    squares = shifted**2
    likelihoods: list[float] = []
    for _ in range(iterations):
        densities = log_densities(X, means, variances)
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
