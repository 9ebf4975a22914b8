"""Forecasts against the truth: ``python -m benchmarks.forecasts [METHOD ...]``.

METHOD is a name with parameters, such as ``ridge-s2v:features=whitened``. Forty small problems are drawn from CUB's
seen classes (20 to 60 seen and 5 to 15 unseen species, equal sizes or 5 to 60 images each); then CUB itself and
`numbers`. PREN_DATA says where CUB is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.drawn import Kind, five_to_sixty, problems
from benchmarks.tables import Table
from pren.cli.options import parse_assignments
from pren.data import load
from pren.evaluation import reliability
from pren.methods.registry import create
from pren.problem import Problem
from pren.trust import assess, label_pool, only_sure

DRAWN = 40
PRECISION = 0.95
DEFAULT = ["pren-pool", "ridge-s2v:features=whitened:refinement=soft-kmeans", "eszsl"]


class Outcome(NamedTuple):
    """A forecast and the truth; all shares from 0 to 1."""

    low: float
    high: float
    truth: float
    ece: float
    kept: float  # the share of labels that PRECISION keeps
    precision: float  # the share of right ones among them; NaN if none is kept

    @property
    def inside(self) -> bool:
        """Whether the truth lies in the range."""
        return self.low <= self.truth <= self.high


def outcome(method: str, problem: Problem, truth: NDArray[np.int64]) -> Outcome:
    """Fit, forecast, and compare."""
    name, *settings = method.split(":")
    fitted = create(name, **parse_assignments(settings)).fit(problem)
    trust = assess(fitted, problem, gamma=True)
    labels = label_pool(fitted.scores, problem, trust)
    right, kept = labels.classes == truth, only_sure(labels, problem, trust, PRECISION).classes >= 0
    believed = reliability(labels.confidence, right)
    assert believed is not None
    share = float(right[kept].mean()) if kept.any() else float("nan")
    return Outcome(
        trust.forecast.low, trust.forecast.high, float(right.mean()), believed.ece, float(kept.mean()), share
    )


def drawn() -> Iterator[tuple[str, Problem, NDArray[np.int64]]]:
    """Small problems of different kinds; none was used to design forecasts."""
    rng = np.random.default_rng(13)
    for number in range(DRAWN):
        seen, unseen = int(rng.integers(20, 61)), int(rng.integers(5, 16))
        equal = bool(number % 2)
        kind = Kind(seen, unseen, 1) if equal else Kind(seen, unseen, 1, five_to_sixty, five_to_sixty)
        for problem, truth in problems(kind):
            yield f"{seen} + {unseen}{'' if equal else ', 5 to 60 images'}", problem, truth


def whole() -> Iterator[tuple[str, Problem, NDArray[np.int64]]]:
    """CUB and `numbers`."""
    for title, name, options in (
        ("CUB PS", "cub", {"features": "efflite0.mat"}),
        ("CUB SS", "cub", {"features": "efflite0.mat", "split": "SS"}),
        ("CUB PS, GZSL", "cub", {"features": "efflite0.mat", "setting": "gzsl"}),
        ("CUB PS, sentences", "cub", {"features": "efflite0.mat", "signatures": "sentences"}),
        ("numbers-features", "numbers-features", {}),
    ):
        problem, answers = load(name, **options)  # type: ignore[arg-type]
        assert answers is not None
        yield title, problem, answers.labels


def run(methods: list[str]) -> Table:
    """A row for the drawn problems together, and one for each of the others."""
    table = Table(
        "Forecasts, confidence and the truth (per cent)",
        ["method", "data", "forecast", "truth", "inside", "width", "ECE", f"{PRECISION:.0%} kept", "of them right"],
    )
    for method in methods:
        small = []
        for title, problem, truth in drawn():
            small.append(outcome(method, problem, truth))
            print(method, title, *np.round(np.array(small[-1]) * 100, 1), file=sys.stderr, flush=True)
        table.rows.append((method.replace(":", " "), *_together(small)))
        for title, problem, truth in whole():
            found = outcome(method, problem, truth)
            table.rows.append(("", title, *_cells(found)))
            print(method, *table.rows[-1], file=sys.stderr, flush=True)
    return table


def _cells(found: Outcome) -> tuple[str, ...]:
    low, high, truth, ece, kept, precision = (f"{100 * share:.1f}" for share in found)
    return (
        f"{low} to {high}",
        truth,
        "yes" if found.inside else "no",
        f"{100 * (found.high - found.low):.0f}",
        ece,
        kept,
        precision,
    )


def _together(found: list[Outcome]) -> tuple[str, ...]:
    """Means; of the width and the calibration error also the median."""
    width = [100 * (one.high - one.low) for one in found]
    ece = [100 * one.ece for one in found]
    return (
        f"{len(found)} drawn problems",
        f"{100 * np.mean([one.low for one in found]):.1f} to {100 * np.mean([one.high for one in found]):.1f}",
        f"{100 * np.mean([one.truth for one in found]):.1f}",
        f"{100 * np.mean([one.inside for one in found]):.0f} %",
        f"{np.mean(width):.0f} (median {np.median(width):.0f})",
        f"{np.mean(ece):.1f} (median {np.median(ece):.1f})",
        f"{100 * np.mean([one.kept for one in found]):.1f}",
        f"{100 * np.nanmean([one.precision for one in found]):.1f}",
    )


if __name__ == "__main__":
    print(run(sys.argv[1:] or DEFAULT).markdown())
