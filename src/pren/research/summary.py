"""One row of a comparison: a method on some data, over all seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from pren.evaluation import FIGURES
from pren.research.cells import Result


@dataclass(frozen=True)
class Spread:
    """The mean and standard deviation of a sample; the latter is None for a single value."""

    mean: float
    std: float | None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Spread | None:
        """Over the values that are not None; None if there are none."""
        known = [value for value in values if value is not None]
        return cls(fmean(known), stdev(known) if len(known) > 1 else None) if known else None


@dataclass(frozen=True)
class Row:
    """A row of the tables and the chart.

    Attributes:
        data: The data's title.
        method: The method's title.
        given: Whether it has its own parameters.
        runs: How many cells are computed.
        failed: How many of them failed.
        reason: Why the first of those failed.
        figures: By name, as fractions; None if all failed. Like times and memory, over the runs that did not fail.
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
        """Why figures are missing; empty if none are."""
        if not self.runs:
            return "not computed"
        if not self.failed:
            return ""
        which = "" if self.runs == 1 else f" ({self.failed} of {self.runs} seeds)"
        return f"failed{which}: {self.reason}"


def summarise(data: str, method: str, given: bool, results: Sequence[Result]) -> Row:
    """Join the results of all computed seeds."""
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
