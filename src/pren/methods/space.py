"""Search spaces: which values of a method's parameters are worth trying. `pren tune` draws from them.

A method says what it wants tuned in its class attribute `space`, by the names of its constructor's parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Real:
    """A number between two others, drawn evenly, or evenly in its logarithm."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`, both included, drawn evenly or evenly in its logarithm."""

    low: int
    high: int
    log: bool = False


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[str | int | float | bool, ...]


Space = Mapping[str, Real | Whole | Choice]
