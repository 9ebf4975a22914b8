"""Familiarity: whether an input looks like one of the candidate classes, or like none of them.

It uses two distances. The distance to the nearest labelled class shows whether an input is of their kind; strangers in
the pool hardly change it. The distance to the nearest candidate, which the pool has placed, shows whether it is one of
these classes. Held-out seen classes show which distances are usual. It does not depend on the method.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from pren.data.folds import FEWEST, FOLDS, class_folds, held_out_classes
from pren.methods.formulas import Formula, Sides, count_below, flat, on_arrays, run, squared_distances, unit
from pren.methods.pren_pool import MOST_UNSEEN, PrENPool
from pren.methods.preparation import Matrix
from pren.methods.preparation.whitening import MOST_FEATURES, whitened
from pren.problem import Problem
from pren.problem.inputs import Array, Inputs, as_inputs, chunks
from pren.trust.quiet import quietly

STRANGE = 0.01  # an input that is less familiar looks like none of the classes
RIVALRY = 0.5  # how much a near class that is no candidate counts against an input
SELDOM = 3  # the kind counts if it is so many times as unusual as the place: other species are of the same kind
ROUNDING = 1e-9  # of distances between vectors of length 1


class Places(Formula):
    """The distances of inputs from the labelled kind, and from the nearest candidate.

    Args:
        classes: (S, d) the directions of the seen classes.
        centre: (d,) of the whitening.
        map: (d, k) of the whitening.
        candidates: (C, k) whitened means of the candidates.
        rivals: (R, k) whitened means of other classes: in ZSL the seen ones, in GZSL none.
    """

    learns: ClassVar[Sides] = {
        "classes": ("S", "d"),
        "centre": ("d",),
        "map": ("d", "k"),
        "candidates": ("C", "k"),
        "rivals": ("R", "k"),
    }

    classes: Tensor
    centre: Tensor
    map: Tensor
    candidates: Tensor
    rivals: Tensor

    def forward(self, inputs: Tensor) -> Tensor:
        """(n, ...) -> (n, 2)."""
        x = flat(inputs)
        z = whitened(x, self.centre, self.map)
        near = squared_distances(z, self.candidates).amin(dim=1)
        if len(self.rivals):
            near = near - RIVALRY * squared_distances(z, self.rivals).amin(dim=1)
        return torch.stack([kind_distances(x, self.classes), near], dim=1)


class Familiarity(Places):
    """The share of inputs of known classes that are at least as far from their class as an input is.

    Args:
        kind: (n,) sorted distances of n held-out inputs from the labelled kind.
        place: (n,) their sorted distances from the nearest candidate.
        least: (n,) the smaller of the shares beyond each, sorted.
        **arrays: See `Places`.
    """

    learns: ClassVar[Sides] = {**Places.learns, "kind": ("n",), "place": ("n",), "least": ("n",)}

    kind: Tensor
    place: Tensor
    least: Tensor

    def forward(self, inputs: Tensor) -> Tensor:
        """(n, ...) -> (n,) from 0, like none of the classes, to 1."""
        least = smaller_share(super().forward(inputs), self.kind, self.place)
        return count_below(self.least, least + ROUNDING, equal=True).double() / len(self.least)

    @classmethod
    def learn(cls, problem: Problem) -> Familiarity | None:
        """Learn from the labelled inputs and the pool; a small part of the pool may be strangers.

        Returns:
            None for image files, for more features than whitening takes, for more classes than PrEN-Pool takes, and for
            too few seen classes to hold some out.
        """
        d, seen = int(np.prod(problem.train.sample_shape)), int(problem.classes.seen.sum())
        if problem.train.photographs or d > MOST_FEATURES or seen < 2 * FEWEST:
            return None
        if int(problem.classes.unseen.sum()) > MOST_UNSEEN:
            return None
        # Where each fold learns its own features, rehearsals have already learned those of these folds.
        folds = held_out_classes(problem, FOLDS) if problem.train.learned else class_folds(problem)
        usual = np.concatenate([run(places_of(fold), fold.pool) for fold, _ in folds])
        kind, place = usual.T
        classes = torch.from_numpy(class_directions(problem))
        of_pool = run(lambda chunk: kind_distances(flat(chunk), classes), problem.pool)
        kind = moved(kind, of_pool)
        kept = np.flatnonzero(on_arrays(share_beyond, np.sort(kind), of_pool) > STRANGE)
        given = None if problem.given is None else problem.given[kept]
        clean = replace(problem, pool=problem.pool.select(kept), given=given)
        places = places_of(clean)
        place = moved(place, run(places, clean.pool)[:, 1])
        sorted_kind, sorted_place = np.sort(kind), np.sort(place)
        least = on_arrays(smaller_share, np.column_stack([kind, place]), sorted_kind, sorted_place)
        return cls(**places.arrays, kind=sorted_kind, place=sorted_place, least=np.sort(least))

    def of(self, features: Inputs | Array) -> Matrix:
        """(N,) of N feature vectors of the problem's kind."""
        return run(self, as_inputs(features))

    @classmethod
    def restore(cls, arrays: dict[str, Matrix], d: int) -> Familiarity:
        """The inverse of `arrays`, for features of length d.

        Raises:
            ValueError: If the arrays do not fit.
        """
        sizes = cls.check("familiarity", arrays, d=d)
        for name, array in arrays.items():
            if array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{name} of the familiarity does not hold finite numbers in double precision")
        if 0 in (sizes["S"], sizes["C"], sizes["n"]):
            raise ValueError("the familiarity knows no class or no input")
        if any((np.diff(arrays[name]) < 0).any() for name in ("kind", "place", "least")):
            raise ValueError("the usual distances of the familiarity are not sorted")
        return cls(**arrays)


def places_of(problem: Problem) -> Places:
    """Where the classes of a problem lie."""
    with quietly():
        fitted, among = PrENPool().fit(problem), problem.candidates()
    assert fitted.preparation_ is not None
    return Places(
        classes=class_directions(problem),
        **fitted.preparation_.arrays,
        candidates=fitted.means_[among],
        rivals=fitted.means_[~among],
    )


def class_directions(problem: Problem) -> Matrix:
    """(S, d) the means of the seen classes; inputs and means have length 1."""
    sums, start = np.zeros((len(problem.classes), int(np.prod(problem.train.sample_shape)))), 0
    for chunk in chunks(problem.train):
        np.add.at(sums, problem.labels[start : start + len(chunk)], unit(flat(chunk)).numpy())
        start += len(chunk)
    return on_arrays(unit, sums[problem.classes.seen])


def kind_distances(x: Tensor, classes: Tensor) -> Tensor:
    """(n,) 1 minus the cosine of inputs (n, d) with the nearest seen class (S, d)."""
    return 1 - (unit(x) @ classes.T).amax(dim=1)


def moved(usual: Matrix, found: Matrix) -> Matrix:
    """Usual distances (n,), moved up to the median of those found in the pool (N,) if that is larger.

    A pool from another camera is farther away as a whole. A few strangers hardly change the median.
    """
    return usual + max(0.0, float(np.median(found) - np.median(usual)))


def share_beyond(usual: Tensor, found: Tensor) -> Tensor:
    """(N,) the share of the sorted usual distances (n,) that are at least as large as each found (N,)."""
    return 1 - count_below(usual, found - ROUNDING, equal=False).double() / len(usual)


def smaller_share(found: Tensor, kind: Tensor, place: Tensor) -> Tensor:
    """(N,) the smaller share of usual distances beyond an input's two (N, 2); the kind counts less."""
    return torch.minimum(SELDOM * share_beyond(kind, found[:, 0]), share_beyond(place, found[:, 1]))
