"""What several sources of signatures count, as something that `pren tune` chooses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pren.describe import reweighted, source_names
from pren.methods.space import Real, Space
from pren.problem import Problem
from pren.runs.config import RunConfig

NAME = "weight of {}"  # what a trial calls it
RATIO = Real(0.03, 30.0, log=True)  # how much a source counts against the first one
OPTION = "signature_weights"  # what a data set calls all of them


def weight_space(config: RunConfig) -> Space:
    """A ratio for every source but the first, if there are several and nobody has said what they count."""
    return {} if OPTION in config.options else dict.fromkeys(_ratios(config), RATIO)


def weights_of(config: RunConfig, params: Mapping[str, Any]) -> list[float] | None:
    """The weights of all sources by the ratios among `params`; None if there are none."""
    if not any(name in params for name in _ratios(config)):
        return None
    return from_ratios([1.0, *(float(params[name]) for name in _ratios(config))])


def from_ratios(ratios: Sequence[float]) -> list[float]:
    """Weights in these ratios.

    Their squares are 1 on average: ratios do not change how long signatures are as a whole, which other parameters
    depend on. All ratios 1 are all weights 1.
    """
    length = math.sqrt(sum(ratio**2 for ratio in ratios) / len(ratios))
    return [round(ratio / length, 4) for ratio in ratios]


def without_weights(config: RunConfig, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are the method's."""
    return {name: value for name, value in params.items() if name not in _ratios(config)}


def weighted(problem: Problem, weights: list[float] | None) -> Problem:
    """A problem whose sources of signatures count so much, instead of what they did."""
    if weights is None:
        return problem
    record = problem.source["signatures"]
    signatures = reweighted(problem.classes.signatures, record, weights)
    return problem.redescribed(signatures, {**record, "weights": weights})


def _ratios(config: RunConfig) -> list[str]:
    wanted = config.options.get("signatures")
    return [] if wanted is None else [NAME.format(source) for source in source_names(str(wanted))[1:]]
