"""Search spaces: the values of a method's parameters that `pren tune` tries.

`Method.space` has them by the names of parameters. `only` limits a parameter to one setting. `gamma` is never drawn:
the curves of the validation folds give it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pren.problem import Setting


@dataclass(frozen=True)
class Real:
    """A number from `low` to `high`, drawn evenly, or evenly in its logarithm."""

    low: float
    high: float
    log: bool = False
    only: Setting | None = None


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`, both included, drawn evenly or evenly in its logarithm."""

    low: int
    high: int
    log: bool = False
    only: Setting | None = None


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[str | int | float | bool, ...]
    only: Setting | None = None


Dimension = Real | Whole | Choice
Space = Mapping[str, Dimension]


def holds(dimension: Dimension, value: object) -> bool:
    """Whether a value could be drawn."""
    if isinstance(dimension, Choice):
        return value in dimension.values
    return isinstance(value, int | float) and dimension.low <= value <= dimension.high
