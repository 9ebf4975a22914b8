"""How sure the names of groups are: from the heads' agreement to the share of such names that are right.

A group is what has one label. `Method.name_shares` says which share of the heads gives it which name. All heads have
seen the same pool, so their agreement claims too much: the certainty of a name is less sure than the agreement.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit

from pren.methods.base import Method
from pren.problem import UNKNOWN, Problem

Vector = NDArray[np.float64]
Places = NDArray[np.int64]
# Chosen on validation draws 0 to 19 of `benchmarks.names` (docs/results/names.md).
OFFSET, SLOPE = -0.4, 0.66  # of the logit of the agreement
LEAST_DOUBT = 0.005  # an agreement counts as no nearer to 0 or 1: with 200 heads, one of them
UNEVEN = -1.5  # to the logit of a group of odd size
SPREAD = 0.7  # how far all names of a problem together are surer or less sure than they seem (a deviation of logits)
GIVEN = 3.0  # to that of a group in which a person has given its label
CHECK = 0.75  # a name that is less certain is to be checked
LARGE = 1.75  # times the usual size is odd: another class may be among them
FEW = 0.5  # times the usual size, too: most may be elsewhere
EQUALS = 3  # groups or more have a usual size


class Names(NamedTuple):
    """The names that a method has given to groups.

    Attributes:
        shares: (L, L) the share of heads that give the group of a class, by rows, each name, by columns; 0 in the rows
            of classes whose name is no question.
        sizes: (L,) how many inputs have each label.
        given: (L,) how many of them a person has given that label.
        surer: What is added to the logit of every certainty, because of what labels of a person have shown.
    """

    shares: Vector
    sizes: Places
    given: Places
    surer: float = 0.0

    @classmethod
    def of(cls, method: Method, labels: Places, problem: Problem) -> Names | None:
        """The names in the labels (N,) of a pool; None if the method chooses no names."""
        shares = method.name_shares()
        if shares is None:
            return None
        decided = np.full(len(labels), UNKNOWN) if problem.given is None else problem.given
        L = len(problem.classes)
        return cls(shares, count(labels, L), count(decided, L))

    @property
    def asked(self) -> NDArray[np.bool_]:
        """(L,) which classes have a group whose name was chosen."""
        asked: NDArray[np.bool_] = np.greater(self.shares.sum(axis=1), 0)
        return asked

    @property
    def there(self) -> NDArray[np.bool_]:
        """(L,) which of these groups have inputs."""
        there: NDArray[np.bool_] = self.asked & (self.sizes > 0)
        return there

    def odd(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(L,) the groups of odd size: the large ones, then the small or empty ones."""
        large, small = np.zeros((2, len(self.sizes)), dtype=bool)
        large[self.asked], small[self.asked] = odd_sizes(self.sizes[self.asked])
        return large, small

    @property
    def crowded(self) -> float:
        """The share of the inputs of these groups that the large ones have beyond `LARGE` times the usual size."""
        sizes = self.sizes[self.asked]
        return float(np.maximum(sizes - LARGE * usual_size(sizes), 0).sum() / max(int(sizes.sum()), 1))

    def certainty(self) -> Vector:
        """(L,) how likely the name of each group is right, from 0 to 1; 1 where it is no question."""
        agreement = np.clip(self.shares.diagonal(), LEAST_DOUBT, 1 - LEAST_DOUBT)
        large, small = self.odd()
        evidence = self.surer + OFFSET + SLOPE * logit(agreement) + UNEVEN * (large | small) + GIVEN * (self.given > 0)
        return np.where(self.asked, expit(evidence), 1.0)

    def to_check(self, certainty: Vector | None = None) -> NDArray[np.bool_]:
        """(L,) the groups whose names are to be checked, by their certainty (L,) if it is known already."""
        certainty = self.certainty() if certainty is None else certainty
        doubtful: NDArray[np.bool_] = self.there & (certainty < CHECK) & (self.given == 0)
        return doubtful


def odd_sizes(sizes: Places) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of n groups (n,) have swallowed another, by their size, and which have lost most of theirs or all.

    With fewer than three groups nothing is usual.
    """
    if len(sizes) < EQUALS or not sizes.any():
        none = np.zeros(len(sizes), dtype=bool)
        return none, none
    usual = usual_size(sizes)
    return np.greater(sizes, LARGE * usual), np.less(sizes, FEW * usual)


def usual_size(sizes: Places) -> float:
    """The median of the groups (n,) with inputs; the mean of all where that is smaller: a few groups have taken all."""
    there = sizes[sizes > 0]
    return min(float(np.median(there)), float(sizes.mean())) if len(there) else 0.0


def count(labels: Places, L: int) -> Places:
    """(L,) how many inputs have each label (N,)."""
    counts: Places = np.bincount(labels[labels != UNKNOWN], minlength=L)
    return counts


def well_named(labels: Places, truth: Places, seen: NDArray[np.bool_]) -> Places:
    """(N,) labels whose groups have the best names that they can have: what is wrong then is not the name.

    Groups of unseen classes and the names of these classes are matched one to one, so that most labels are right.

    Args:
        labels: (N,) rows of the class table.
        truth: (N,) the right ones.
        seen: (L,) classes whose groups have their name.
    """
    L, unseen = len(seen), np.flatnonzero(~seen)
    together = np.zeros((L, L))
    np.add.at(together, (labels, truth), 1.0)
    groups, names = linear_sum_assignment(-(together + 1e-9 * np.eye(L))[np.ix_(unseen, unseen)])
    best = np.arange(L)
    best[unseen[groups]] = unseen[names]
    return best[labels]
