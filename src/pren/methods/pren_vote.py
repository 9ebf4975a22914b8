"""PrEN-Vote: the pool says what belongs together, and a vote of heads says which class it is.

What is the paper's and what is ours: docs/concepts/methods.md.
"""

from __future__ import annotations

import logging
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import inv
from scipy.optimize import linear_sum_assignment

from pren.foundation.seeds import stream
from pren.methods.formulas import Matrix
from pren.methods.likeliest_names import Groups, Guesses, Places, names_by
from pren.methods.naming import agreed, draw_heads, votes_on
from pren.methods.params import Positive, learned, param
from pren.methods.pren_pool import Mixture, PrENPool, Prior, adapt, after_given, divided
from pren.problem import UNKNOWN, Problem
from pren.problem.order import order_of

log = logging.getLogger(__name__)
ROUNDS = 3  # at most; most often the names stay after the first
MANY_NAMED = 200  # classes: beyond, comparing them takes minutes rather than seconds
MOST_NAMED = 500  # classes: heads compare every two of them
MARGIN = 0.3  # a group keeps its usual name unless another leads by this share of the heads
LABEL = 10.0  # times all heads: what a label of a person counts


class PrENVote(PrENPool):
    """Groups by variational EM on the pool, as PrEN-Pool; their names by K heads; both again until the names stay.

    All that is known gives every group its usual name. Every head k knows less: it guesses where the unseen classes lie
    from its own weights of the coordinates, and names all groups at once (`pren.methods.naming`). φ(g, c) is
    the share of heads that give the group g the name c. A group keeps its usual name unless another leads by
    `MARGIN`. Where a name changes, EM starts again from the groups under their new names. A class whose group has no
    images keeps its guess and stays empty. The names agree with as many of a person's labels as they can.

    Attributes:
        votes_: (L, L) φ: in the row of an unseen class, the names that the heads give to the group it has now. The rows
            of seen classes, and of classes that are added later, are 0.
    """

    name: ClassVar[str] = "pren-vote"

    heads: Positive = param(200, "K, how many heads vote on the names.")
    seed: int = param(0, "What the draws of the heads come from.", ge=0)

    votes_: Matrix = learned("L", "L")

    def name_shares(self) -> Matrix:
        """φ: see `votes_`."""
        return self.votes_

    def name_agreement(self) -> Matrix:
        """(L,) the share of heads that give the group of a class its name; 0 for classes that nothing was voted on."""
        agreement: Matrix = self.votes_.diagonal().copy()
        return agreement

    def runner_up(self) -> NDArray[np.int64]:
        """(L,) the other class that most heads give the group of a class to; the class itself where there is none."""
        others = self.votes_ - np.diag(self.votes_.diagonal())
        most = others.argmax(axis=1)
        return np.where(others.max(axis=1) > 0, most, np.arange(len(others)))

    def _adapted(self, problem: Problem, everyone: Prior, prior: Prior, pool: Matrix) -> Mixture:
        table = problem.classes
        if (count := int(table.unseen.sum())) > MOST_NAMED:
            log.warning("There is no vote on the names of %d classes, only of up to %d.", count, MOST_NAMED)
            self.votes_ = np.zeros((len(table),) * 2)
            return super()._adapted(problem, everyone, prior, pool)
        if count > MANY_NAMED:
            log.info("The heads compare all %d unseen classes with one another, which takes minutes.", count)
        order = order_of(table.signatures, everyone.means)  # names and the order of the table mean nothing
        seen, unseen = order[table.seen[order]], order[table.unseen[order]]
        places = np.cumsum(problem.candidates())[unseen] - 1  # among the candidates
        own = np.cumsum(table.unseen)[unseen] - 1  # among the unseen classes
        every_fact = Guesses(prior.means[places][None], inv(prior.covariance[np.ix_(own, own)])[None])
        offset = prior.means[places[0]] - everyone.means[unseen[0]]
        told = draw_heads(self.heads, len(seen), table.signatures.shape[1], stream(self.seed, "heads"))
        known, left = after_given(problem, prior, pool, self.evidence)
        fitted = adapt(left, known, self.evidence, self.caution, self.balance)
        for _ in range(ROUNDS):
            groups = groups_of(left, fitted, prior, places, self.evidence)
            said = told_of(fitted, problem, pool, places)
            fixed = said_of(said)
            # What moves all classes alike moves the means of seen classes, too.
            votes = votes_on(
                groups._replace(centres=groups.centres - offset),
                told,
                table.signatures[seen],
                everyone.means[seen],
                table.signatures[unseen],
                fixed,
            )
            usual = np.eye(len(votes))[:, names_by(every_fact, groups, fixed)[0]]
            usual[said.any(axis=1)] = 0  # a group about which a person has spoken has no usual name
            votes += LABEL * said
            named = agreed(votes, usual, groups.weight, MARGIN)
            votes /= votes.sum(axis=1, keepdims=True)
            if (named == np.arange(len(named))).all():
                break
            votes = votes[named]
            renamed = np.arange(len(prior.means))
            renamed[places] = places[named]
            start = Mixture(fitted.means[renamed], fitted.variances, fitted.offsets[renamed])
            fitted = adapt(left, known, self.evidence, self.caution, self.balance, start)
        self.votes_ = np.zeros((len(table),) * 2)
        self.votes_[np.ix_(unseen, unseen)] = votes
        return fitted

    def _take_in(self) -> None:
        super()._take_in()
        self.votes_ = np.pad(self.votes_, ((0, 1), (0, 1)))


def groups_of(X: Matrix, fitted: Mixture, prior: Prior, places: Places, evidence: float) -> Groups:
    """The groups of the u unseen classes.

    A group weighs w = n / (n + n₀): n₀ images would tell as much of where its class lies as the guess does.

    Args:
        X: (N, d) the pool.
        fitted: The C candidates as the pool has placed them.
        prior: The candidates as they were guessed.
        places: (u,) where the unseen classes stand among them.
        evidence: What an image of the pool counts.
    """
    shares, sums = divided(X, fitted)
    n = shares[places]
    alike = float(fitted.variances[0]) / (evidence * float(prior.covariance.diagonal().mean()))  # n₀
    centres = sums[places] / np.maximum(n, np.finfo(np.float64).tiny)[:, None]
    return Groups(centres, n / (n + alike))


def told_of(fitted: Mixture, problem: Problem, pool: Matrix, places: Places) -> Matrix:
    """(u, u) how many labels that a person has given speak for giving a group, by rows, a name, by columns.

    Args:
        fitted: The candidates as the pool has placed them.
        problem: Which inputs are labelled how.
        pool: (N, d).
        places: (u,) where the unseen classes stand among the candidates.
    """
    said = np.zeros((len(places),) * 2)
    inputs, given = problem.decided()
    if not len(inputs):
        return said
    own = {int(place): row for row, place in enumerate(places)}
    labels = np.cumsum(problem.candidates())[given] - 1
    found = fitted.scores(pool[inputs]).argmax(axis=1)
    for group, label in zip(found.tolist(), labels.tolist(), strict=True):
        if group in own and label in own:
            said[own[group], own[label]] += 1
    return said


def said_of(said: Matrix) -> Places:
    """(u,) the group that a person has given each class to, `UNKNOWN` where nothing is said: all as one, one to one.

    Args:
        said: (u, u) from `told_of`.
    """
    groups, labels = linear_sum_assignment(-said)
    fixed = np.full(len(said), UNKNOWN)
    spoken = said[groups, labels] > 0
    fixed[labels[spoken]] = groups[spoken]
    return fixed
