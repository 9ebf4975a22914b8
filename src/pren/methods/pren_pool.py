"""PrEN-Pool: signatures predict where each class lies, the pool corrects it."""

from __future__ import annotations

import logging
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import inv
from scipy.special import softmax
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.methods.base import Method
from pren.methods.class_statistics import class_statistics
from pren.methods.formulas import Gaussians, gaussian_scores, on_arrays
from pren.methods.gaussian_process import guess_means
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.preparation.whitening import CHANCE
from pren.methods.refinement import REFINEMENTS
from pren.methods.refinement.base import blocks
from pren.methods.refinement.sinkhorn import even_offsets
from pren.methods.space import Choice, Real
from pren.problem import ClassTable, Problem

log = logging.getLogger(__name__)
STEPS = 15
SOFT_STEPS, SOFTNESS = 5, 0.5  # in the first steps scores count half
LEAST_TRUST = {"zsl": 0.1, "gzsl": 0.25}  # in the prior; with less, no input goes to an unseen class in GZSL
LEAST_VARIANCE = 1e-6  # of σ² in the pool, as a share of that of the labelled inputs
GIVEN_BACK = 0.25  # to a class that is added later, chosen on CUB's validation folds (docs/results/words.md)
MOST_UNSEEN = 2000  # classes: their covariance is inverted in every step, which takes seconds here
ROUNDING = 1e-24  # of a square, relative: smaller values do not count


class Prior(NamedTuple):
    """What is known about C classes before the pool is read.

    Attributes:
        means: (C, d) of labelled inputs, or predicted for the u unseen classes.
        counts: (C,) how many labelled inputs each mean is of; 0 for unseen classes.
        covariance: (u, u) of each feature of the predicted means, in the order of the unseen classes.
        variance: σ² of an input, of each feature.
    """

    means: Matrix
    counts: Matrix
    covariance: Matrix
    variance: float

    def doubts(self) -> Matrix:
        """(C,) the variance of each mean, of each feature."""
        doubts = self.variance / np.where(self.counts > 0, self.counts, 1.0)
        doubts[self.counts == 0] = self.covariance.diagonal()
        return doubts

    def after(self, shares: Matrix, sums: Matrix, variance: float) -> Prior:
        """What is known after more inputs.

        Args:
            shares: (C,) how many of them are of each class.
            sums: (C, d) of these inputs.
            variance: σ² of an input, of each feature.
        """
        unseen, precision = self.counts == 0, inv(self.covariance)
        counts = np.where(unseen, 0.0, self.counts + shares)
        means = (self.counts[:, None] * self.means + sums) / np.where(unseen, 1.0, counts)[:, None]
        covariance = inv(precision + np.diag(shares[unseen] / variance))
        means[unseen] = covariance @ (precision @ self.means[unseen] + sums[unseen] / variance)
        return Prior(means, counts, covariance, variance)


class Mixture(NamedTuple):
    """C classes that score an input with -‖x - μ_c‖² / 2 v_c + b_c.

    Attributes:
        means: (C, d) μ.
        variances: (C,) v.
        offsets: (C,) b.
    """

    means: Matrix
    variances: Matrix
    offsets: Matrix

    def scores(self, x: Matrix) -> Matrix:
        """(n, d) -> (n, C)."""
        return on_arrays(gaussian_scores, x, self.means, self.variances, self.offsets)


class PrENPool(Method):
    """p(x|c) = N(x; μ_c, σ² I) in the whitened space, with a Gaussian process from signatures to μ as the prior.

    `pren fit` takes it when no method is named. It is not in the paper, and has no network and no randomness.
    Variational EM on the pool moves the classes. How far depends on how well signatures predict the means of labelled
    classes (`guess_means`), so a class with few inputs stays near its predicted mean. Classes may have any size unless
    `balance` says otherwise. In GZSL labelled inputs hold the means of seen classes. Inputs of the pool that a person
    has labelled move their classes first.

    Attributes:
        means_: (L, d) μ.
        offsets_: (L,) added to the score of a class: less where its mean is uncertain.
        variance_: (1,) σ².
    """

    name: ClassVar[str] = "pren-pool"
    learns_given: ClassVar[bool] = True
    log_shares: ClassVar[bool] = True

    features: str = param("whitened", "How features are prepared.", among=PREPARATIONS)
    refinement: str = param("none", "As for every method; this one learns from the pool without it.", among=REFINEMENTS)
    balance: float = param(
        0.0,
        "How strongly the unseen classes of the pool are held to equal size, from 0 to 1.",
        ge=0,
        le=1,
        search=Choice((0.0, 0.5)),
    )
    evidence: float = param(
        0.2,
        "How much each input of the pool counts; 1 if inputs of a class are independent, less if they are alike.",
        gt=0,
        le=1,
        search=Real(0.05, 1.0, log=True),
    )
    caution: float = param(0.5, "How much a class with an uncertain mean is held back.", ge=0, search=Real(0.0, 1.0))

    means_: Matrix = learned("L", "d")
    offsets_: Matrix = learned("L")
    variance_: Matrix = learned("one")

    @classmethod
    def check_classes(cls, table: ClassTable) -> None:
        """Refuse more unseen classes than can all be compared."""
        if (unseen := int(table.unseen.sum())) > MOST_UNSEEN:
            raise PrenError(
                "classes-too-many",
                f"{cls.name} compares every class without labelled images with every other: it takes at most "
                f"{MOST_UNSEEN}, not {unseen}. Describe only classes that may be in the pool, or take another method, "
                "such as --method ridge-s2v.",
            )

    def _fit(self, problem: Problem) -> None:
        table, X = problem.classes, self._features(problem.train)
        means, variances = class_statistics(X, problem.labels, len(table))
        counts = np.bincount(problem.labels, minlength=len(table)).astype(np.float64)
        variance = variance_within(variances, counts, X)
        guess = guess_means(table.signatures[table.seen], means[table.seen], table.signatures[table.unseen])
        means[table.unseen] = guess.means
        everyone = Prior(means, counts, guess.covariance, variance)
        candidates = problem.candidates()
        pool = self._features(problem.pool)
        prior, apart = moved_to(pool, everyone._replace(means=means[candidates], counts=counts[candidates]))
        if apart > CHANCE:
            log.warning(
                "The pool looks unlike the labelled inputs: its centre is %.0f times as far away (squared) as other "
                "classes explain. Labels are less sure; add labelled inputs of the pool's kind.",
                apart,
            )
        fitted = self._adapted(problem, everyone, prior, pool)
        self.variance_ = fitted.variances[:1]
        self.means_, self.offsets_ = means, held_back(everyone.doubts(), self.caution, X.shape[1], variance)
        self.means_[candidates], self.offsets_[candidates] = fitted.means, fitted.offsets

    def _adapted(self, problem: Problem, everyone: Prior, prior: Prior, pool: Matrix) -> Mixture:
        """The C candidates as the pool places them.

        Args:
            problem: What to learn.
            everyone: What labelled images and signatures tell of all L classes.
            prior: The same of the candidates, moved to where the pool lies.
            pool: (N, d).
        """
        known, left = after_given(problem, prior, pool, self.evidence)
        return adapt(left, known, self.evidence, self.caution, self.balance)

    def _scorer(self) -> nn.Module:
        return Gaussians(means=self.means_, variance=self.variance_, offsets=self.offsets_)

    def _take_in(self) -> None:
        """Predict the mean of the class from the means of all others, seen or unseen.

        Its inputs lie farther from it than those of other classes from their means, by about d times the doubt: part of
        that is given back.
        """
        table = self.classes_
        guess = guess_means(table.signatures[:-1], self.means_, table.signatures[-1:])
        doubt, d, σ2 = guess.covariance.diagonal(), self.means_.shape[1], float(self.variance_[0])
        self.means_ = np.vstack([self.means_, guess.means])
        self.offsets_ = np.append(self.offsets_, held_back(doubt, -GIVEN_BACK, d, σ2))

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        if not (self.variance_ > 0).all():
            raise ValueError("the variance must be positive")


def variance_within(variances: Matrix, counts: Matrix, X: Matrix) -> float:
    """σ² of each feature within a class; where no class has two inputs, half of the variance of all inputs.

    Args:
        variances: (L, d) of each class about its mean.
        counts: (L,) how many inputs it has.
        X: (n, d) all inputs.
    """
    freedom = float(np.maximum(counts - 1, 0).sum())
    within = float(counts @ variances.mean(axis=1)) / freedom if freedom else 0.5 * float(X.var(axis=0).mean())
    return within if within > ROUNDING * float((X**2).mean()) else 1.0  # all inputs may be equal


def moved_to(X: Matrix, prior: Prior) -> tuple[Prior, float]:
    """Move the classes to a pool that lies elsewhere, such as one from another camera.

    If the centre of the pool X (N, d) is farther from that of the classes than chance explains, all classes move
    together, and the prior counts less.

    Returns:
        The prior for this pool, and how many times farther (squared) it is than expected, on average 1.
    """
    C, centre = len(prior.means), prior.means.mean(axis=0)
    unsure = prior.covariance.sum() + prior.variance * (1 / prior.counts[prior.counts > 0]).sum()
    expected = unsure / C**2 + ((prior.means - centre) ** 2).mean() / C + prior.variance / len(X)
    away = X.mean(axis=0) - centre
    apart = float((away**2).mean() / expected)
    if apart <= CHANCE:
        return prior, apart
    means, trust = (
        prior.means + (1 - 1 / apart) * away,
        max(CHANCE / apart, LEAST_TRUST["gzsl" if prior.counts.any() else "zsl"]),
    )
    return Prior(means, prior.counts * trust, prior.covariance / trust, prior.variance), apart


def after_given(problem: Problem, prior: Prior, pool: Matrix, evidence: float) -> tuple[Prior, Matrix]:
    """What is known after the labels that a person has given, and the inputs (n, d) of the pool (N, d) without one."""
    images, given = problem.decided()
    if not len(images):
        return prior, pool
    places = np.cumsum(problem.candidates())[given] - 1
    return shown(pool[images], places, prior, evidence), pool[problem.undecided()]


def shown(X: Matrix, places: NDArray[np.int64], prior: Prior, evidence: float) -> Prior:
    """What is known after a person has labelled some inputs of the pool.

    Such an input counts like any other that is wholly of its class: a single one can look like another class. With a
    weight of 1, results on CUB's validation folds were worse, most of all with few labels.

    Args:
        X: (n, d) these inputs.
        places: (n,) their classes among the C candidates.
        prior: What was known before.
        evidence: The weight of an input of the pool.
    """
    of_class = places[:, None] == np.arange(len(prior.means))
    return prior.after(evidence * of_class.sum(axis=0), evidence * (of_class.T @ X), prior.variance)


def adapt(
    X: Matrix, prior: Prior, evidence: float, caution: float, balance: float, start: Mixture | None = None
) -> Mixture:
    """Variational EM on a pool: which inputs are of which class, and where the classes lie.

    Args:
        X: (N, d) the pool.
        prior: Of the C candidates.
        evidence: The weight of an input of the pool.
        caution: See `held_back`; variational EM has 1.
        balance: See `even_offsets`.
        start: Classes to compare the inputs with in the first step; None for the prior, with soft first steps.
    """
    unseen, (N, d) = prior.counts == 0, X.shape
    squares, σ2 = sum(float((X[block] ** 2).sum()) for block in blocks(N, len(unseen))), prior.variance
    expected = σ2 + prior.doubts()
    mixture = Mixture(prior.means, expected, -0.5 * d * np.log(expected)) if start is None else start
    potentials = np.zeros(len(unseen))
    for step in range(STEPS):
        softness = SOFTNESS if start is None and step < SOFT_STEPS else 1.0
        even = np.zeros(len(unseen))
        if balance > 0:
            scores = np.concatenate([softness * mixture.scores(X[block]) for block in blocks(N, len(unseen))])
            even, potentials = even_offsets(scores, unseen, balance, potentials)
        shares, sums = divided(X, mixture, softness, even)
        known = prior.after(evidence * shares, evidence * sums, σ2)
        means, doubts = known.means, known.doubts()
        # Σ q_ic (‖x_i - μ_c‖² + d doubt_c) over inputs and classes; an input's q add up to 1.
        spread = squares - 2 * (sums * means).sum() + float(shares @ ((means**2).sum(axis=1) + d * doubts))
        σ2 = max(spread / X.size, LEAST_VARIANCE * prior.variance)
        mixture = Mixture(means, np.full(len(means), σ2), held_back(doubts, caution, d, σ2))
    return mixture._replace(offsets=mixture.offsets + even)


def divided(X: Matrix, mixture: Mixture, softness: float = 1.0, even: Matrix | float = 0.0) -> tuple[Matrix, Matrix]:
    """Divide inputs X (N, d) among C classes, each by its shares q.

    Returns:
        How many each class gets, Σ_i q_ic (C,), and their sum Σ_i q_ic x_i (C, d).
    """
    shares, sums = np.zeros(len(mixture.means)), np.zeros_like(mixture.means)
    for block in blocks(len(X), len(shares)):
        q = softmax(softness * mixture.scores(X[block]) + even, axis=1)
        shares += q.sum(axis=0)
        sums += q.T @ X[block]
    return shares, sums


def held_back(doubts: Matrix, caution: float, d: int, variance: float) -> Matrix:
    """-caution · d · doubt / 2σ² (C,): offsets of classes whose means have the variances `doubts` (C,)."""
    offsets: Matrix = -0.5 * caution * d * doubts / variance
    return offsets
