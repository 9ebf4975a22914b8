"""PrEN-Pool: the signatures say where each class should lie, the pool says where it does."""

from __future__ import annotations

import logging
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import inv
from scipy.special import softmax
from torch import Tensor

from pren.inputs import Inputs
from pren.methods.base import Method
from pren.methods.gaussian_process import guess_means
from pren.methods.gfzsl import class_statistics
from pren.methods.params import learned, param
from pren.methods.space import Real
from pren.preparation import PREPARATIONS, Matrix
from pren.preparation.whitening import CHANCE
from pren.problem import Problem, candidates_of
from pren.refinement.base import blocks, squared_distances

log = logging.getLogger(__name__)
STEPS = 15
SOFT_STEPS, SOFTNESS = 5, 0.5  # the first steps, in which images are decided half as much


class Mixture(NamedTuple):
    """A Gaussian of one variance for each of C classes, whose means are not known exactly.

    Attributes:
        means: (C, d) the best guess.
        doubts: (C,) the variance of that guess, of each feature.
        variance: σ² of an image, of each feature.
    """

    means: Matrix
    doubts: Matrix
    variance: float


class Prior(NamedTuple):
    """What is known about C classes before the pool is looked at.

    Attributes:
        means: (C, d) of labelled images, or guessed for the u unseen classes.
        counts: (C,) how many labelled images hold each mean; 0 for unseen classes.
        covariance: (u, u) of each feature of the guesses, in the order of the unseen classes.
        variance: σ² of an image, of each feature.
    """

    means: Matrix
    counts: Matrix
    covariance: Matrix
    variance: float

    def mixture(self) -> Mixture:
        """The classes as they are expected."""
        doubts = self.variance / np.where(self.counts > 0, self.counts, 1.0)
        doubts[self.counts == 0] = self.covariance.diagonal()
        return Mixture(self.means, doubts, self.variance)


class PrENPool(Method):
    """p(x|c) = N(x; μ_c, σ² I) in the whitened space, with a Gaussian process from signatures to μ as the prior.

    The recipe that `pren fit` takes when nobody names a method. It is not in the paper, and has neither network nor
    chance in it. What the labelled classes show about how well signatures foretell means decides how far the pool may
    move a class (`guess_means`); variational EM on the pool does it. A class with few images so stays near its guess,
    and no class is held to any size. In GZSL the means of seen classes are those of their labelled images.

    Attributes:
        means_: (L, d) μ.
        doubts_: (L,) how uncertain μ is.
        variance_: (1,) σ².
    """

    name: ClassVar[str] = "pren-pool"

    features: str = param("whitened", "How features are prepared.", among=PREPARATIONS)
    evidence: float = param(
        0.2,
        "How much of an independent image each image of the pool counts: images of a class are alike.",
        gt=0,
        le=1,
        search=Real(0.05, 1.0, log=True),
    )
    caution: float = param(0.5, "How much a class is held back whose place is uncertain.", ge=0, search=Real(0.0, 1.0))

    means_: Matrix = learned("L", "d")
    doubts_: Matrix = learned("L")
    variance_: Matrix = learned("one")

    def _fit(self, problem: Problem) -> None:
        table, X = problem.classes, self._features(problem.train)
        means, variances = class_statistics(X, problem.labels, len(table))
        counts = np.bincount(problem.labels, minlength=len(table)).astype(np.float64)
        variance = variance_within(variances, counts, X)
        guess = guess_means(table.signatures[table.seen], means[table.seen], table.signatures[table.unseen])
        means[table.unseen] = guess.means
        candidates = table.among(candidates_of(problem.setting))
        pool = self._features(problem.pool)
        prior = Prior(means[candidates], counts[candidates], guess.covariance, variance)
        prior, apart = moved_to(pool, prior)
        if apart > CHANCE:
            log.warning(
                "The pool looks unlike the labelled images: its centre is %.0f times as far from theirs as other "
                "classes explain (squared). Labels will be less sure; labelled images of the pool's kind help.",
                apart,
            )
        fitted = adapt(pool, prior, self.evidence, self.caution)
        doubts = variance / np.maximum(counts, 1.0)
        means[candidates], doubts[candidates] = fitted.means, fitted.doubts
        self.means_, self.doubts_, self.variance_ = means, doubts, np.array([fitted.variance])

    def _scores(self, inputs: Inputs) -> Matrix:
        fitted = Mixture(self.means_, self.doubts_, float(self.variance_[0]))
        return np.concatenate([log_densities(x, fitted, self.caution) for x in self._chunks(inputs)])

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        if not (self.variance_ > 0).all():
            raise ValueError("the variance must be positive")


def variance_within(variances: Matrix, counts: Matrix, X: Matrix) -> float:
    """σ² of each feature within a class; where no class has two images, half of the variance of all images X (n, d).

    Args:
        variances: (L, d) of each class's images, about their own mean.
        counts: (L,) how many they are.
        X: (n, d) all of them.
    """
    freedom = float(np.maximum(counts - 1, 0).sum())
    within = float(counts @ variances.mean(axis=1)) / freedom if freedom else 0.5 * float(X.var(axis=0).mean())
    return within or 1.0  # all images may be the same


def moved_to(X: Matrix, prior: Prior) -> tuple[Prior, float]:
    """Move the classes to a pool that lies elsewhere: taken with another camera, say.

    The centre of the pool X (N, d) is compared with that of the classes. Where it is farther away than chance and what
    is known of the classes explain, all classes move together, and what is known of each is believed less.

    Returns:
        The prior for this pool, and how many times farther (squared) it is than expected, on average 1.
    """
    C, centre = len(prior.means), prior.means.mean(axis=0)
    unsure = prior.covariance.sum() + prior.variance * (1 / prior.counts[prior.counts > 0]).sum()
    expected = unsure / C**2 + ((prior.means - centre) ** 2).mean() / C + prior.variance / max(len(X), 1)
    away = X.mean(axis=0) - centre if len(X) else np.zeros_like(centre)
    apart = float((away**2).mean() / expected)
    if apart <= CHANCE:
        return prior, apart
    trust = CHANCE / apart
    return Prior(
        prior.means + (1 - 1 / apart) * away, prior.counts * trust, prior.covariance / trust, prior.variance
    ), apart


def adapt(X: Matrix, prior: Prior, evidence: float, caution: float) -> Mixture:
    """Variational EM: which images of the pool X (N, d) are of which class, and where the classes then lie."""
    unseen, d = prior.counts == 0, X.shape[1]
    precision = inv(prior.covariance)
    pulled = precision @ prior.means[unseen]
    mixture = start = prior.mixture()
    for step in range(STEPS if len(X) else 0):
        shares, sums, squares = np.zeros(len(unseen)), np.zeros_like(start.means), 0.0
        for block in blocks(len(X), len(unseen)):
            x = X[block]
            densities = log_predictive(x, start) if step == 0 else log_densities(x, mixture, caution)
            q = softmax(densities * (SOFTNESS if step < SOFT_STEPS else 1.0), axis=1)
            shares += q.sum(axis=0)
            sums += q.T @ x
            squares += float((x**2).sum())  # the shares of an image add up to 1
        σ2 = mixture.variance
        weights = np.maximum(prior.counts + evidence * shares, np.finfo(np.float64).tiny)
        means = (prior.counts[:, None] * prior.means + evidence * sums) / weights[:, None]
        doubts = σ2 / weights
        covariance = inv(precision + np.diag(weights[unseen] / σ2))
        means[unseen] = covariance @ (pulled + evidence * sums[unseen] / σ2)
        doubts[unseen] = covariance.diagonal()
        # Σ q_ic (‖x_i - μ_c‖² + d doubt_c) over images and classes.
        spread = squares - 2 * (sums * means).sum() + float(shares @ ((means**2).sum(axis=1) + d * doubts))
        mixture = Mixture(means, doubts, max(spread / X.size, 1e-12 * σ2))
    return mixture


def log_densities(x: Matrix, mixture: Mixture, caution: float) -> Matrix:
    """-(‖x - μ_c‖² + caution · d · doubt_c) / 2σ² for x (n, d): (n, C).

    With caution = 1 it is the expected log-density, as variational EM has it.
    """
    held_back = caution * x.shape[1] * mixture.doubts
    densities: Matrix = -0.5 * (squared_distances(x, mixture.means) + held_back) / mixture.variance
    return densities


def log_predictive(x: Matrix, mixture: Mixture) -> Matrix:
    """log N(x; μ_c, σ² + doubt_c) for x (n, d), up to what all classes share: (n, C)."""
    variances = mixture.variance + mixture.doubts
    densities: Matrix = -0.5 * (squared_distances(x, mixture.means) / variances + x.shape[1] * np.log(variances))
    return densities
