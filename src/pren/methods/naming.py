"""Which group of images is which class: heads that know different parts of what is known each name all groups.

A head has drawn which seen classes it knows and how much each coordinate of the signatures counts, as a head of the
paper has drawn its unseen classes (Z_k), and guesses from these alone where the unseen classes lie. It names the groups
as a whole: the error of one guess tells about the errors of classes that are described alike, so it does not compare
one group with one class but all of them at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from pren.methods.formulas import Matrix
from pren.methods.likeliest_names import ROUNDING, Groups, Guesses, Places, names_by

LEFT_OUT = 10  # a head leaves out one of so many seen classes
HEAD_NOISES = (0.3, 1.0, 3.0)  # ν of a head: with few classes no choice of it is sure
NUMBERS = 1 << 22  # about so many are in memory at once
SAME = 1e-24  # the same for squares


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


def draw_heads(heads: int, S: int, m: int, rng: np.random.Generator) -> Heads:
    """Draw what each head is told of S seen classes with m coordinates each.

    A coordinate weighs √(2t) for one head, t drawn from 0 to 1, and √(2 - 2t) for the next; ten heads leave out a tenth
    of the classes each, or with fewer than ten, each head one. So all count the same, whatever the draw. One or two
    classes are known to every head.
    """
    t = rng.random((-(-heads // 2), m))
    weights = np.sqrt(2 * np.stack([t, 1 - t], axis=1).reshape(-1, m)[:heads])
    turns = min(LEFT_OUT, S)
    k = S // turns if S > 2 else 0
    orders = (rng.permutation(S) for _ in range(0, heads, turns))
    turned = np.array([np.roll(order, turn * k) for order in orders for turn in range(turns)])
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


def votes_on(
    groups: Groups, told: Heads, known: Matrix, values: Matrix, wanted: Matrix, fixed: Places | None = None
) -> Matrix:
    """φ (u, u): the share of heads that give a group, by rows, the name of a class, by columns.

    Args:
        groups: What the pool shows of u classes.
        told: The heads.
        known: (S, m) signatures of the seen classes.
        values: (S, d) their means.
        wanted: (u, m) signatures of the u classes.
        fixed: See `names_by`.
    """
    heads, n, u = len(told.noises), told.classes.shape[1], len(wanted)
    at_once = max(1, NUMBERS // ((n + u) * (n + u + known.shape[1]) + u * values.shape[1]))
    votes = np.zeros((u, u))
    for first in range(0, heads, at_once):
        guesses = guess_each(told.part(slice(first, first + at_once)), known, values, wanted)
        np.add.at(votes, (names_by(guesses, groups, fixed), np.arange(u)), 1)
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
