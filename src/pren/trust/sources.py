"""Which descriptions of the classes to use, where there are several: what tells best where a seen class lies.

One seen class at a time is left out, and its place is guessed from its description and from all other seen classes.
No class of the pool has a part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from pren.data.describe import reweighted
from pren.methods.class_statistics import class_statistics
from pren.methods.gaussian_process import told
from pren.methods.preparation import PREPARATIONS
from pren.methods.preparation.whitening import MOST_FEATURES
from pren.problem import Problem

FEWEST = 15  # seen classes: with fewer, chance decides
RATIOS = (0.5, 1.0, 2.0)  # of the second of two sources to the first
ALONE = 0.02  # a source is left out if that tells by so much more


class Source(BaseModel):
    """One way to describe the classes.

    Attributes:
        names: Of its sources, as --signatures has them.
        weights: What each is multiplied with; none for a single one.
        told: Which share of where a seen class lies it tells, leaving that class out; None if it was not asked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    names: tuple[str, ...]
    weights: tuple[float, ...] = ()
    told: float | None = None

    def options(self) -> dict[str, Any]:
        """As options of the data."""
        weights = {"signature_weights": list(self.weights)} if self.weights else {}
        return {"signatures": ",".join(self.names), **weights}


class Sources(BaseModel):
    """What was chosen, and from what.

    Attributes:
        chosen: The best.
        tried: All, the sources alone first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    chosen: Source
    tried: Annotated[tuple[Source, ...], Field(max_length=10)]

    def sentence(self) -> str:
        """What was chosen and why, for people."""
        names, used = " and ".join(self.tried[-1].names), self.chosen
        if used.told is None:
            return f"Classes are described by {names}, which count alike: nothing here tells which are better."
        alone = ", ".join(f"{' '.join(each.names)} {_percent(each)}" for each in self.tried if not each.weights)
        why = f"leaving out one seen class at a time, that tells {_percent(used)} of where it lies (alone: {alone})"
        if not used.weights:
            return f"Classes are described by {used.names[0]} only: {why}. --signatures chooses by hand."
        ratio = " : ".join(f"{weight / min(used.weights):g}" for weight in used.weights)
        return f"Classes are described by {names}, {ratio}: {why}. --signatures chooses by hand."


def _percent(source: Source) -> str:
    return f"{100 * max(source.told or 0.0, 0.0):.0f} %"


def best_sources(problem: Problem, names: Sequence[str]) -> Sources:
    """Choose between two sources, alone or together.

    Both count alike for images, for more features than whitening takes, and for few seen classes.

    Args:
        problem: Its signatures are the two, from `combine` with equal weights.
        names: Of the two.
    """
    both = tuple(names)
    shape, seen = problem.train.sample_shape, problem.classes.seen
    equal = Source(names=both, weights=(1.0, 1.0))
    if len(shape) > 1 or problem.train.learned or shape[0] > MOST_FEATURES or seen.sum() < FEWEST:
        return Sources(chosen=equal, tried=(equal,))
    prepared = problem.once("features=whitened", lambda: PREPARATIONS["whitened"].fit(problem))
    means = class_statistics(prepared.of(problem.train), problem.labels, len(seen))[0][seen]
    table, record = problem.classes.signatures[seen], problem.source["signatures"]
    parts = np.split(table, [record["sources"][0]["width"]], axis=1)
    tried = [Source(names=(name,), told=told(part, means)) for name, part in zip(both, parts, strict=True)]
    for ratio in RATIOS:
        weights = (1.0, ratio) if ratio >= 1 else (1 / ratio, 1.0)
        values = reweighted(table, record, weights)
        tried.append(Source(names=both, weights=weights, told=told(values, means)))
    return Sources(chosen=max(tried, key=_worth), tried=tuple(tried))


def _worth(source: Source) -> float:
    return (source.told or 0.0) - (0.0 if source.weights else ALONE)


def known_of(source: dict[str, Any]) -> Sources | None:
    """What was chosen when a problem was opened, from its source; None if there was nothing to choose."""
    return Sources.model_validate(source["chosen"]) if "chosen" in source else None
