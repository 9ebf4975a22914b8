"""How many inputs of a pool look like a seen class: whether the pool is mixed.

Inputs of a seen class lie near the mean of one, others do not. How near is near, and how many others come as near by
chance, is learned from the labelled inputs: some classes are held out, and some inputs of the rest. Descriptions of
classes have no part in it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from pren.data.folds import FEWEST, class_folds
from pren.methods.class_statistics import class_statistics
from pren.methods.formulas import on_arrays, squared_distances
from pren.methods.preparation import PREPARATIONS
from pren.methods.preparation.whitening import MOST_FEATURES
from pren.methods.refinement.base import blocks
from pren.problem import Problem
from pren.trust.shift import Shift

Vector = NDArray[np.float64]
NEAR = 0.8  # the share of inputs of seen classes that count as near
LEAST = 0.1  # a smaller share of a pool is not called mixed
SURE = 2.0  # nor one of fewer standard errors


class Mixed(BaseModel):
    """Seen classes in a pool.

    Attributes:
        share: The estimated share of inputs that are of seen classes, from 0 to 1.
        error: Its standard error.
        inputs: How many inputs the pool has.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    share: Annotated[float, Field(ge=0, le=1)]
    error: Annotated[float, Field(ge=0)]
    inputs: Annotated[int, Field(ge=1)]

    @property
    def likely(self) -> bool:
        """Whether seen classes are in the pool, beyond chance."""
        return self.share > max(LEAST, SURE * self.error)

    def sentence(self) -> str:
        """What was found, for people."""
        if not self.likely:
            return "No more inputs than chance look like seen classes: only unseen classes are candidates (zsl)."
        count = round(self.share * self.inputs)
        return (
            f"About {count} of {self.inputs} inputs look like seen classes: these are candidates, too (gzsl). If you "
            "know that there are none, fit with --setting zsl."
        )


def mixed(problem: Problem) -> Mixed | None:
    """How many inputs of a pool are of seen classes; the problem's setting does not matter.

    Returns:
        None for images, for more features than whitening takes, for too few seen classes to hold some out, and for a
        pool of another kind, in which nothing is as near as it should be.
    """
    shape, seen = problem.train.sample_shape, int(problem.classes.seen.sum())
    if len(shape) > 1 or problem.train.learned or shape[0] > MOST_FEATURES or seen < 2 * FEWEST:
        return None
    if Shift.of(problem).notable:
        return None
    own, others = [], []
    for fold, answers in class_folds(replace(problem, setting="gzsl", given=None)):
        distances, of_seen = nearest(fold), fold.classes.seen[answers.labels]
        own.append(distances[of_seen])
        others.append(distances[~of_seen])
    return estimate(own, others, nearest(problem))


def nearest(problem: Problem) -> Vector:
    """(N,) squared distances of the pool's inputs from the nearest mean of a seen class, in the whitened space."""
    prepared = problem.once("features=whitened", lambda: PREPARATIONS["whitened"].fit(problem))
    X, pool = prepared.of(problem.train), prepared.of(problem.pool)
    means = class_statistics(X, problem.labels, len(problem.classes))[0][problem.classes.seen]
    parts = [on_arrays(squared_distances, pool[b], means).min(axis=1) for b in blocks(len(pool), len(means))]
    return np.concatenate(parts)


def estimate(own: list[Vector], others: list[Vector], pool: Vector) -> Mixed:
    """The share π of a pool for which the share of near inputs is π p + (1 - π) q.

    Args:
        own: Distances of held-out inputs of seen classes, of each fold.
        others: Distances of inputs of held-out classes, of each fold: q differs between folds.
        pool: (N,) of the pool.
    """
    limit = float(np.quantile(np.concatenate(own), NEAR))
    p = float((np.concatenate(own) <= limit).mean())
    near = [float((distances <= limit).mean()) for distances in others]
    q, found = float(np.mean(near)), float((pool <= limit).mean())
    if p - q < LEAST:  # nothing tells them apart
        return Mixed(share=0.0, error=1.0, inputs=len(pool))
    counts = sum(map(len, own)), len(pool)
    chance = sum(p * (1 - p) / count for count in counts)
    between = float(np.var(near, ddof=1)) if len(near) > 1 else q * (1 - q)
    share = min(max((found - q) / (p - q), 0.0), 1.0)
    return Mixed(share=share, error=math.sqrt(chance + between) / (p - q), inputs=len(pool))


def known_of(source: dict[str, Any]) -> Mixed | None:
    """What was found when a problem was opened, from its source; None if it was not asked."""
    return Mixed.model_validate(source["mixed"]) if "mixed" in source else None
