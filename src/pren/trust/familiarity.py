"""Familiarity: whether an image looks like one of the classes that it can be of, or like none of them.

Two distances tell. How far an image is from all labelled classes says whether it is of their kind at all, and
strangers in the pool hardly change that. How far it is from the nearest candidate, as the pool shows where that lies,
says whether it is one of these classes. What distances are usual is seen on seen classes that play the unseen ones.
The method that labels the images has no part in it: one familiarity serves all methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from pren.data.folds import FEWEST, FOLDS, class_folds, held_out_classes
from pren.methods.pren_pool import PrENPool
from pren.methods.preparation import Matrix
from pren.methods.preparation.base import flat, unit
from pren.methods.preparation.whitening import MOST_FEATURES, Whitened
from pren.methods.refinement.base import squared_distances
from pren.problem import Problem
from pren.problem.inputs import Array, Inputs, as_inputs, chunks
from pren.trust.quiet import quietly

STRANGE = 0.01  # an image that is less familiar looks like none of the classes
RIVALRY = 0.5  # how much it counts against an image that a class that is no candidate is near
SELDOM = 3  # how many times as unusual the kind must be as the place to count: other species are of the same kind
ROUNDING = 1e-9  # of distances between vectors of length 1
LEARNS: Mapping[str, tuple[str, ...]] = {
    "classes": ("S", "d"),
    "centre": ("d",),
    "map": ("d", "k"),
    "candidates": ("C", "k"),
    "rivals": ("R", "k"),
    "kind": ("n",),
    "place": ("n",),
    "least": ("n",),
}


class Familiarity:
    """The share of images of known classes that are no nearer to their class than an image is.

    Args:
        **arrays: What was learned. `classes` are the directions of the S seen classes; `centre` and `map` whiten;
            `candidates` and `rivals` (in ZSL the seen classes) are where classes lie then; `kind` and `place` are the
            distances, and `least` the smaller shares, of n images of classes that played the unseen ones, sorted.
    """

    learns: ClassVar[Mapping[str, tuple[str, ...]]] = LEARNS

    def __init__(self, **arrays: Matrix) -> None:
        self.arrays = arrays

    @classmethod
    def learn(cls, problem: Problem) -> Familiarity | None:
        """Learn from the labelled images and the pool, of which a minor part may be strangers.

        Returns:
            None where nothing can be learned: from image files, from more features than can be whitened, or where there
            are too few seen classes to hold some out.
        """
        d, seen = int(np.prod(problem.train.sample_shape)), int(problem.classes.seen.sum())
        if problem.train.photographs or d > MOST_FEATURES or seen < 2 * FEWEST:
            return None
        # Features that are learned anew in each fold have been for these, if anybody has rehearsed.
        folds = held_out_classes(problem, FOLDS) if problem.train.learned else class_folds(problem)
        usual = [distances(places_of(fold), fold.pool) for fold, _ in folds]
        kind, place = (np.concatenate(part) for part in zip(*usual, strict=True))
        classes = class_directions(problem)
        of_pool = np.concatenate([kind_distances(classes, flat(chunk)) for chunk in chunks(problem.pool)])
        kind = moved(kind, of_pool)
        kept = np.flatnonzero(share_beyond(np.sort(kind), of_pool) > STRANGE)
        given = None if problem.given is None else problem.given[kept]
        clean = replace(problem, pool=problem.pool.select(kept), given=given)
        places = places_of(clean)
        place = moved(place, distances(places, clean.pool)[1])
        learned = {**places, "kind": np.sort(kind), "place": np.sort(place)}
        return cls(**learned, least=np.sort(smaller_share(learned, kind, place)))

    def of(self, features: Inputs | Array) -> Matrix:
        """(N,) from 0, like none of the classes, to 1, of N feature vectors as those of the problem were."""
        least = smaller_share(self.arrays, *distances(self.arrays, as_inputs(features)))
        known = self.arrays["least"]
        shares: Matrix = np.searchsorted(known, least + ROUNDING, side="right") / len(known)
        return shares

    @classmethod
    def restore(cls, arrays: dict[str, Matrix], d: int) -> Familiarity:
        """The inverse of reading `arrays`.

        Raises:
            ValueError: If they are not those of features of length d.
        """
        if arrays.keys() != cls.learns.keys():
            raise ValueError(f"the familiarity holds {sorted(arrays)}, not {sorted(cls.learns)}")
        sizes = {"d": d}
        for name, sides in cls.learns.items():
            array = arrays[name]
            if len(array.shape) != len(sides) or any(
                sizes.setdefault(side, length) != length for side, length in zip(sides, array.shape, strict=True)
            ):
                raise ValueError(f"{name} of the familiarity cannot be of shape {array.shape}")
            if array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{name} of the familiarity does not hold finite numbers in double precision")
        if 0 in (sizes["S"], sizes["C"], sizes["n"]):
            raise ValueError("the familiarity knows no class or no image")
        if any((np.diff(arrays[name]) < 0).any() for name in ("kind", "place", "least")):
            raise ValueError("the usual distances of the familiarity are not sorted")
        return cls(**arrays)


def places_of(problem: Problem) -> dict[str, Matrix]:
    """Where classes lie: `classes`, `centre`, `map`, `candidates` and `rivals`; see `Familiarity`."""
    with quietly():
        fitted, among = PrENPool().fit(problem), problem.candidates()
    assert fitted.preparation_ is not None
    return {
        "classes": class_directions(problem),
        **fitted.preparation_.arrays,
        "candidates": fitted.means_[among],
        "rivals": fitted.means_[~among],
    }


def class_directions(problem: Problem) -> Matrix:
    """(S, d) the means of the seen classes, of images brought to length 1 and of length 1 themselves."""
    sums, start = np.zeros((len(problem.classes), int(np.prod(problem.train.sample_shape)))), 0
    for chunk in chunks(problem.train):
        np.add.at(sums, problem.labels[start : start + len(chunk)], unit(flat(chunk)))
        start += len(chunk)
    return unit(sums[problem.classes.seen])


def distances(places: Mapping[str, Matrix], inputs: Inputs) -> tuple[Matrix, Matrix]:
    """How far (N,) images are from the labelled kind, and (N,) from the nearest candidate."""
    whitened = Whitened(centre=places["centre"], map=places["map"])
    kind, near = [], []
    for chunk in chunks(inputs):
        x = flat(chunk)
        kind.append(kind_distances(places["classes"], x))
        z = whitened.transform(x)
        near.append(squared_distances(z, places["candidates"]).min(axis=1))
        if len(places["rivals"]):
            near[-1] -= RIVALRY * squared_distances(z, places["rivals"]).min(axis=1)
    return np.concatenate(kind), np.concatenate(near)


def kind_distances(classes: Matrix, x: Matrix) -> Matrix:
    """(n,) 1 less the cosine of images (n, d) with the nearest of the seen classes (S, d)."""
    nearest: Matrix = (unit(x) @ classes.T).max(axis=1)
    return 1 - nearest


def moved(usual: Matrix, found: Matrix) -> Matrix:
    """Usual distances (n,), larger by what the median of those found in the pool (N,) is beyond theirs.

    A pool that was taken with another camera is farther away as a whole. The median hardly minds some strangers.
    """
    return usual + max(0.0, float(np.median(found) - np.median(usual)))


def share_beyond(usual: Matrix, found: Matrix) -> Matrix:
    """(N,) which share of the usual distances (n,), sorted, is at least as large as each found (N,)."""
    nearer = np.searchsorted(usual, found - ROUNDING, side="left")
    shares: Matrix = 1 - nearer / len(usual)
    return shares


def smaller_share(usual: Mapping[str, Matrix], kind: Matrix, place: Matrix) -> Matrix:
    """(N,) the smaller of the shares of usual distances beyond an image's two (N,); that of the kind counts less."""
    return np.minimum(SELDOM * share_beyond(usual["kind"], kind), share_beyond(usual["place"], place))
