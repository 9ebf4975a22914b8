"""Which group of images is which class: heads that know different parts of what is known each name all groups.

A head has drawn which seen classes it knows and how much each coordinate of the signatures counts, as a head of the
paper has drawn its unseen classes (Z_k), and guesses from these alone where the unseen classes lie. It names the groups
as a whole: the error of one guess tells about the errors of classes that are described alike, so it does not compare
one group with one class but all of them at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pren.methods.formulas import Matrix

Places = NDArray[np.int64]
LEFT_OUT = 10  # a head leaves out one of so many seen classes
HEAD_NOISES = (0.3, 1.0, 3.0)  # ν of a head: with few classes no choice of it is sure
NUMBERS = 1 << 22  # about so many are in memory at once
ROUNDING = 1e-9  # what is smaller by so much is nothing
SAME = 1e-24  # the same for squares


class Groups(NamedTuple):
    """What the pool shows of u classes.

    Attributes:
        centres: (u, d) the means of the images in each group.
        weight: (u,) from 0 to 1 how far each is known: a group without images has no centre.
    """

    centres: Matrix
    weight: Matrix


class Heads(NamedTuple):
    """What h heads are told.

    Attributes:
        classes: (h, n) places of seen classes.
        weights: (h, m) what each coordinate of the signatures is multiplied with.
        noises: (h,) ν, the part of a class's place that no signature tells (`guess_means`).
    """

    classes: Places
    weights: Matrix
    noises: Matrix

    def part(self, some: slice) -> Heads:
        """Some of the heads."""
        return Heads(self.classes[some], self.weights[some], self.noises[some])


class Guesses(NamedTuple):
    """Where h heads take u classes to lie.

    Attributes:
        means: (h, u, d).
        precision: (h, u, u) the inverse of the covariance of the means, but for a factor.
    """

    means: Matrix
    precision: Matrix


def draw_heads(heads: int, S: int, m: int, rng: np.random.Generator) -> Heads:
    """Draw what each head is told of S seen classes with m coordinates each.

    A coordinate weighs √(2t) for one head, t drawn from 0 to 1, and √(2 - 2t) for the next; ten heads leave out a tenth
    of the classes each. So all count the same, whatever the draw. With fewer than ten classes every head has all.
    """
    t = rng.random((-(-heads // 2), m))
    weights = np.sqrt(2 * np.stack([t, 1 - t], axis=1).reshape(-1, m)[:heads])
    k, orders = S // LEFT_OUT, (rng.permutation(S) for _ in range(0, heads, LEFT_OUT))
    turned = np.array([np.roll(order, turn * k) for order in orders for turn in range(LEFT_OUT)])
    return Heads(np.sort(turned[:heads, k:], axis=1), weights, np.resize(np.repeat(HEAD_NOISES, 2), heads))


def guess_each(told: Heads, known: Matrix, values: Matrix, wanted: Matrix) -> Guesses:
    """What `guess_means` gives from what each head is told, with its ν.

    Args:
        told: The heads.
        known: (S, m) signatures of classes with known means.
        values: (S, d) these means.
        wanted: (u, m) signatures of the others.
    """
    n = told.classes.shape[1]
    wanted = np.broadcast_to(wanted, (len(told.classes), *wanted.shape))
    z = np.concatenate([known[told.classes], wanted], axis=1) * told.weights[:, None, :]
    z -= z[:, :n].mean(axis=1, keepdims=True)
    products = z @ z.swapaxes(1, 2)
    squares = products.diagonal(axis1=1, axis2=2)
    length = squares[:, :n].mean(axis=1)[:, None, None]
    length = np.where(length > SAME * (known**2).max(), length, 1.0)  # all may be the same
    apart = np.maximum(squares[:, :, None] + squares[:, None, :] - 2 * products, 0) / length
    pairs = np.triu_indices(n, 1)
    width = np.median(apart[:, pairs[0], pairs[1]], axis=1) if n > 1 else np.zeros(len(z))
    width = np.where(width > ROUNDING, width, 1.0)[:, None, None]
    kernel = 1 + products / length + np.exp(-apart / width) + told.noises[:, None, None] * np.eye(z.shape[1])
    across = kernel[:, n:, :n]
    weights = np.linalg.solve(kernel[:, :n, :n], across.swapaxes(1, 2)).swapaxes(1, 2)
    covariance = kernel[:, n:, n:] - weights @ across.swapaxes(1, 2)
    return Guesses(weights @ values[told.classes], np.linalg.inv(covariance).astype(np.float64, copy=False))


def names_by(guesses: Guesses, groups: Groups) -> Places:
    """The group of each class (h, u) by which each head finds the groups most likely.

    With r_c = w_g (x_g - μ_c), the distance of the centre x_g of its group from the guess μ_c, the least Σ_ab A_ab
    r_a·r_b is wanted, A the precision of the guesses. That is a quadratic assignment: it begins with the best by single
    distances (A = I), and then two classes change their groups, the best two first, while that helps.
    """
    means, u = guesses.means, len(groups.weight)
    A = guesses.precision / np.abs(guesses.precision).max(axis=(1, 2), keepdims=True)
    alone = groups.weight**2 * squared_distances(means, groups.centres)
    named = np.array([linear_sum_assignment(costs)[1] for costs in alone], dtype=np.int64)
    least = -ROUNDING * alone.max(axis=(1, 2))
    left = np.arange(len(named))
    while len(left) and u > 1:
        changes = swap_changes(groups, means[left], A[left], named[left]).reshape(len(left), -1)
        best = changes.argmin(axis=1)
        helps = changes[np.arange(len(left)), best] < least[left]
        left = left[helps]
        first, second = np.divmod(best[helps], u)
        named[left, first], named[left, second] = named[left, second], named[left, first]
    return named


def swap_changes(groups: Groups, means: Matrix, A: Matrix, named: Places) -> Matrix:
    """(h, u, u) by how much Σ_ab A_ab r_a·r_b grows where class r gets the group of class s and s that of r.

    Args:
        groups: Their centres and weights.
        means: (h, u, d) μ, where the classes are guessed to lie.
        A: (h, u, u) symmetric.
        named: (h, u) the group that each class has now.
    """
    x, w = groups.centres[named], groups.weight[named]
    away = w[..., None] * (x - means)
    pull = A @ away
    of_x, of_means, of_away = x.swapaxes(1, 2), means.swapaxes(1, 2), away.swapaxes(1, 2)
    w_s = w[:, None, :]

    def inner(a: Matrix, b: Matrix) -> Matrix:
        product: Matrix = (a * b).sum(axis=2)
        return product

    # Of class r with the group of s: w_s (x_s - μ_r), less what it has now.
    along = w_s * (pull @ of_x - inner(pull, means)[..., None]) - inner(pull, away)[..., None]
    with_own = w_s * (away @ of_x - inner(away, means)[..., None])  # w_s (x_s - μ_r) · away_r
    squares = w_s**2 * squared_distances(means, x) - 2 * with_own + inner(away, away)[..., None]
    to_other = w_s * (inner(x, away)[:, None, :] - means @ of_away)  # w_s (x_s - μ_r) · away_s
    on_own = inner(means, x)
    both = w_s * w[..., None] * (x @ of_x - on_own[:, None, :] - on_own[..., None] + means @ of_means)
    cross = both - to_other - to_other.swapaxes(1, 2) + away @ of_away
    half = 2 * along + A.diagonal(axis1=1, axis2=2)[..., None] * squares
    changes: Matrix = half + half.swapaxes(1, 2) + 2 * A * cross
    changes[:, range(len(w[0])), range(len(w[0]))] = 0.0
    return changes


def squared_distances(a: Matrix, b: Matrix) -> Matrix:
    """(h, r, d) and (h, s, d) or (s, d) -> (h, r, s)."""
    products = a @ b.swapaxes(-1, -2)
    apart: Matrix = (a**2).sum(axis=-1)[..., None] + (b**2).sum(axis=-1)[..., None, :] - 2 * products
    return np.maximum(apart, 0)


def votes_on(groups: Groups, told: Heads, known: Matrix, values: Matrix, wanted: Matrix) -> Matrix:
    """φ (u, u): the share of heads that give a group, by rows, the name of a class, by columns.

    Args:
        groups: What the pool shows of u classes.
        told: The heads.
        known: (S, m) signatures of the seen classes.
        values: (S, d) their means.
        wanted: (u, m) signatures of the u classes.
    """
    heads, n, u = len(told.noises), told.classes.shape[1], len(wanted)
    at_once = max(1, NUMBERS // ((n + u) * (n + u + known.shape[1]) + u * values.shape[1]))
    votes = np.zeros((u, u))
    for first in range(0, heads, at_once):
        guesses = guess_each(told.part(slice(first, first + at_once)), known, values, wanted)
        np.add.at(votes, (names_by(guesses, groups), np.arange(u)), 1)
    return votes / heads


def agreed(votes: Matrix, usual: Matrix, weight: Matrix, margin: float) -> Places:
    """The group of each class (u,) that the votes speak for, all groups together.

    A group keeps its usual name unless another leads by more than the margin. A group without images has no say.

    Args:
        votes: (u, u) the share of heads that give a group, by rows, the name of a class.
        usual: (u, u) 1 for the name that a group has by all that is known, else 0.
        weight: (u,) of the groups, from 0 to 1.
        margin: A share of the heads.
    """
    gain = weight[:, None] * (votes + margin * usual) + ROUNDING * np.eye(len(votes))  # of equals the name it has now
    named: Places = linear_sum_assignment(-gain.T)[1].astype(np.int64)
    return named
