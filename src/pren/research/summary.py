"""One row of a comparison: a method on some data, over all seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from pren.evaluation import FIGURES
from pren.research.cells import Result


@dataclass(frozen=True)
class Spread:
    """A mean, and the standard deviation of a sample; None where there is but one value."""

    mean: float
    std: float | None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Spread | None:
        """Over the values that there are; None if there are none."""
        there = [value for value in values if value is not None]
        return cls(fmean(there), stdev(there) if len(there) > 1 else None) if there else None


@dataclass(frozen=True)
class Row:
    """What the tables and the chart show.

    Attributes:
        data: The data's title.
        method: The method's title.
        given: Whether it was given parameters of its own.
        runs: How many cells have been computed.
        failed: How many of them failed.
        reason: Why the first of those failed.
        figures: By name, as fractions; None where all failed. This and what follows is over those that did not fail.
    """

    data: str
    method: str
    given: bool
    runs: int
    failed: int
    reason: str | None
    figures: dict[str, Spread | None]
    fit_seconds: Spread | None
    predict_seconds: Spread | None
    peak_bytes: Spread | None

    def note(self) -> str:
        """Why there are no figures, or fewer than runs; empty if there is nothing to say."""
        if not self.runs:
            return "not computed"
        if not self.failed:
            return ""
        which = "" if self.runs == 1 else f" ({self.failed} of {self.runs} seeds)"
        return f"failed{which}: {self.reason}"


def summarise(data: str, method: str, given: bool, results: Sequence[Result]) -> Row:
    """Join the results of all seeds that have been computed."""
    errors = [result.error for result in results if result.error is not None]
    done = [result for result in results if result.error is None]
    names = {name for figures in FIGURES.values() for name in figures}
    return Row(
        data=data,
        method=method,
        given=given,
        runs=len(results),
        failed=len(errors),
        reason=errors[0] if errors else None,
        figures={name: Spread.of([result.figures.get(name) for result in done]) for name in sorted(names)},
        fit_seconds=Spread.of([result.fit_seconds for result in done]),
        predict_seconds=Spread.of([result.predict_seconds for result in done]),
        peak_bytes=Spread.of([result.peak_bytes for result in done]),
    )
