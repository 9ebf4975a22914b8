"""Weights of several sources of signatures, for `pren tune` to choose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pren.data.describe import reweighted, source_names
from pren.methods.space import Real, Space
from pren.problem import Problem
from pren.store.config import RunConfig

NAME = "weight of {}"  # in a trial
RATIO = Real(0.03, 30.0, log=True)  # of a source to the first one
OPTION = "signature_weights"  # of a data set


def weight_space(config: RunConfig) -> Space:
    """A ratio for every source but the first, if there are several and their weights are not set."""
    return {} if OPTION in config.options else dict.fromkeys(_ratios(config), RATIO)


def weights_of(config: RunConfig, params: Mapping[str, Any]) -> list[float] | None:
    """The weights of all sources from the ratios in `params`; None if there are none."""
    if not any(name in params for name in _ratios(config)):
        return None
    return from_ratios([1.0, *(float(params[name]) for name in _ratios(config))])


def from_ratios(ratios: Sequence[float]) -> list[float]:
    """Weights in these ratios, whose squares have the mean 1: so ratios do not change the length of signatures."""
    length = math.sqrt(sum(ratio**2 for ratio in ratios) / len(ratios))
    return [round(ratio / length, 4) for ratio in ratios]


def without_weights(config: RunConfig, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the method."""
    return {name: value for name, value in params.items() if name not in _ratios(config)}


def weighted(problem: Problem, weights: list[float] | None) -> Problem:
    """A problem with these weights of its sources of signatures."""
    if weights is None:
        return problem
    record = problem.source["signatures"]
    signatures = reweighted(problem.classes.signatures, record, weights)
    return problem.redescribed(signatures, {**record, "weights": weights})


def _ratios(config: RunConfig) -> list[str]:
    wanted = config.options.get("signatures")
    return [] if wanted is None else [NAME.format(source) for source in source_names(str(wanted))[1:]]
