"""The names by which groups of images are likeliest, all together: a quadratic assignment for many heads at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pren.methods.formulas import Matrix
from pren.problem import UNKNOWN

Places = NDArray[np.int64]
ROUNDING = 1e-9  # what is smaller by so much is nothing


class Groups(NamedTuple):
    """What the pool shows of u classes.

    Attributes:
        centres: (u, d) the means of the images in each group.
        weight: (u,) from 0 to 1 how far each is known: a group without images has no centre.
    """

    centres: Matrix
    weight: Matrix


class Guesses(NamedTuple):
    """Where h heads take u classes to lie.

    Attributes:
        means: (h, u, d).
        precision: (h, u, u) the inverse of the covariance of the means, but for a factor.
    """

    means: Matrix
    precision: Matrix


def names_by(guesses: Guesses, groups: Groups, fixed: Places | None = None) -> Places:
    """The group of each class (h, u) by which each head finds the groups most likely.

    With r_c = w_g (x_g - μ_c), the distance of the centre x_g of its group from the guess μ_c, the least Σ_ab A_ab
    r_a·r_b is wanted, A the precision of the guesses. That is a quadratic assignment: it begins with the best by single
    distances (A = I), and then two classes change their groups, the best two first, while that helps.

    Args:
        guesses: Where the heads take the classes to lie.
        groups: What is to be named.
        fixed: (u,) the group of each class that is known to have it, else `UNKNOWN`; None for none.
    """
    means = guesses.means
    A = guesses.precision / np.abs(guesses.precision).max(axis=(1, 2), keepdims=True)
    alone = groups.weight**2 * squared_distances(means, groups.centres)
    least = -ROUNDING * alone.max(axis=(1, 2))
    stays = np.zeros(alone.shape[1], dtype=bool) if fixed is None else fixed != UNKNOWN
    if fixed is not None and stays.any():
        own = alone[:, stays, fixed[stays]]
        alone[:, stays] = alone[:, :, fixed[stays]] = 2 * alone.max() * len(stays) + 1
        alone[:, stays, fixed[stays]] = own
    named = np.array([linear_sum_assignment(costs)[1] for costs in alone], dtype=np.int64)
    u = named.shape[1]
    now = Standing.of(groups, means, A, named)
    changes = swap_changes(now, np.broadcast_to(np.arange(u), named.shape))
    left = np.arange(len(named))
    while len(left):
        changes[:, stays] = 0.0
        changes[:, :, stays] = 0.0
        best = changes.reshape(len(left), -1).argmin(axis=1)
        pairs = np.stack(np.divmod(best, u), axis=1)
        helps = changes[np.arange(len(left)), pairs[:, 0], pairs[:, 1]] < least[left]
        if not helps.all():
            left, pairs, changes, now = left[helps], pairs[helps], changes[helps], now.part(helps)
        if len(left):
            named[left[:, None], pairs] = named[left[:, None], pairs[:, ::-1]]
            now = follow(now, changes, pairs)
    return named


class Standing(NamedTuple):
    """How u classes stand to the groups that h heads give them now.

    Attributes:
        means: (h, u, d) μ, where the classes are guessed to lie.
        A: (h, u, u) symmetric.
        x: (h, u, d) the centres of their groups.
        w: (h, u) the weights of their groups.
        away: (h, u, d) r = w (x - μ).
        pull: (h, u, d) A r.
    """

    means: Matrix
    A: Matrix
    x: Matrix
    w: Matrix
    away: Matrix
    pull: Matrix

    @classmethod
    def of(cls, groups: Groups, means: Matrix, A: Matrix, named: Places) -> Standing:
        """The classes with the groups (h, u) that are named."""
        x, w = groups.centres[named], groups.weight[named]
        away = w[..., None] * (x - means)
        return cls(means, A, x, w, away, A @ away)

    def part(self, some: NDArray[np.bool_]) -> Standing:
        """Some of the heads."""
        return Standing(*(values[some] for values in self))

    def rows(self, of: Places) -> Standing:
        """Some classes (h, k) of each head; `A` has their rows (h, k, u)."""
        return Standing(*(np.take_along_axis(v, of if v.ndim == 2 else of[..., None], axis=1) for v in self))


def swap_changes(now: Standing, rows: Places) -> Matrix:
    """(h, k, u) by how much Σ_ab A_ab r_a·r_b grows where class r gets the group of class s and s that of r.

    Args:
        now: How the classes stand.
        rows: (h, k) the classes r; s are all.
    """
    these, diagonal = now.rows(rows), now.A.diagonal(axis1=1, axis2=2)
    half = _taking(these, now, np.take_along_axis(diagonal, rows, axis=1))
    half += _taking(now, these, diagonal).swapaxes(1, 2)
    # (w_s (x_s - μ_r) - r_r) · (w_r (x_r - μ_s) - r_s)
    w_r, w_s = these.w[..., None], now.w[:, None, :]
    of_x, of_means, of_away = (values.swapaxes(1, 2) for values in (now.x, now.means, now.away))
    own_r, own_s = _inner(these.x, these.means)[..., None], _inner(now.x, now.means)[:, None, :]
    cross = w_r * w_s * (these.x @ of_x - own_s - own_r + these.means @ of_means)
    cross -= w_s * (_inner(now.x, now.away)[:, None, :] - these.means @ of_away)
    cross -= w_r * (_inner(these.x, these.away)[..., None] - these.away @ of_means)
    changes: Matrix = half + 2 * these.A * (cross + these.away @ of_away)
    np.put_along_axis(changes, rows[..., None], 0.0, axis=2)
    return changes


def _taking(classes: Standing, others: Standing, diagonal: Matrix) -> Matrix:
    """(h, a, b) what it adds that a class a takes the group of b, were that all; `diagonal` (h, a) is of A."""
    of_x, w = others.x.swapaxes(1, 2), others.w[:, None, :]
    along = w * (classes.pull @ of_x - _inner(classes.pull, classes.means)[..., None])
    along -= _inner(classes.pull, classes.away)[..., None]
    with_own = w * (classes.away @ of_x - _inner(classes.away, classes.means)[..., None])  # w_b (x_b - μ_a) · r_a
    squares = w**2 * squared_distances(classes.means, others.x) - 2 * with_own
    squares += _inner(classes.away, classes.away)[..., None]
    added: Matrix = 2 * along + diagonal[..., None] * squares
    return added


def follow(now: Standing, changes: Matrix, pairs: Places) -> Standing:
    """How the classes stand after two (h, 2) have changed their groups; `changes` (h, u, u) follow in place.

    For two other classes only A r changes, by the columns of A of these two: that is a matrix of rank 8, and costs u²
    where a fresh one costs u² d.
    """
    heads = np.arange(len(pairs))[:, None]
    x, w, away = now.x.copy(), now.w.copy(), now.away.copy()
    x[heads, pairs], w[heads, pairs] = x[heads, pairs[:, ::-1]], w[heads, pairs[:, ::-1]]
    away[heads, pairs] = w[heads, pairs][..., None] * (x[heads, pairs] - now.means[heads, pairs])
    moved = away[heads, pairs] - now.away[heads, pairs]  # (h, 2, d)
    columns = now.A[heads, pairs].swapaxes(1, 2)  # (h, u, 2)
    after = now._replace(x=x, w=w, away=away, pull=now.pull + columns @ moved)
    of_moved = moved.swapaxes(1, 2)
    falls = [-(columns * (values @ of_moved)).sum(axis=2, keepdims=True) for values in (now.means, away)]
    rises = [w[..., None] * (x @ of_moved), w[..., None], np.ones_like(w)[..., None]]
    left, right = np.concatenate([columns, *falls], axis=2), np.concatenate(rises, axis=2)
    both = np.concatenate([left, right], axis=2), np.concatenate([right, left], axis=2)
    changes += 2 * (both[0] @ both[1].swapaxes(1, 2))
    fresh = swap_changes(after, pairs)
    changes[heads, pairs] = fresh
    changes.swapaxes(1, 2)[heads, pairs] = fresh
    changes[:, range(changes.shape[1]), range(changes.shape[1])] = 0.0
    return after


def _inner(a: Matrix, b: Matrix) -> Matrix:
    product: Matrix = (a * b).sum(axis=2)
    return product


def squared_distances(a: Matrix, b: Matrix) -> Matrix:
    """(h, r, d) and (h, s, d) or (s, d) -> (h, r, s)."""
    products = a @ b.swapaxes(-1, -2)
    apart: Matrix = (a**2).sum(axis=-1)[..., None] + (b**2).sum(axis=-1)[..., None, :] - 2 * products
    return np.maximum(apart, 0)
