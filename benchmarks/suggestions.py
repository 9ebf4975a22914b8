"""What labels of suggested images are worth: ``python -m benchmarks.suggestions [--test] [METHOD ...]``.

METHOD is a name with parameters, as for `benchmarks.drawn`. The problems are CUB's validation folds and those of
`benchmarks.drawn`, on which `pren.trust.suggestion` was chosen; with ``--test`` it is CUB's test classes (PS).
PREN_DATA says where CUB is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.drawn import KINDS, Numbers, problems
from benchmarks.tables import Table
from pren.cli.options import parse_assignments
from pren.data import load
from pren.methods.base import Method
from pren.methods.registry import create
from pren.problem import UNKNOWN, Problem
from pren.problem.scoring import top_classes
from pren.trust.suggestion import suggest

DEFAULT = [
    "pren-pool",
    "ridge-s2v:features=whitened:refinement=soft-kmeans",
    "eszsl:features=whitened:refinement=soft-kmeans",
]
RANDOM = 10  # draws
COLUMNS = ["problem", "no label", "1, random", "1, suggested", "2, random", "2, suggested", "1 + 1, suggested"]
NOTE = (
    "1 or 2 labels per unseen class, given at once; or 1, a fit, and 1 more. Per cent of the images without a given "
    "label that are right, mean of the problems; ± is the standard deviation of one random choice "
    f"({RANDOM} for each problem). In brackets what the same images have if no label is given."
)


class Outcome(NamedTuple):
    """Per cent right of the inputs without a given label, with given labels and without any."""

    after: float
    before: float


class Trial:
    """A problem whose true classes are known, and a method that is fitted to it with some of them given."""

    def __init__(self, method: str, problem: Problem, truth: Numbers) -> None:
        self.method, self.problem, self.truth = method, problem, truth
        self.classes = int(problem.classes.unseen.sum())
        self.nothing = np.empty(0, dtype=np.int64)
        self.names = problem.classes.named(truth)
        self.before = self._fit(self.nothing).predict(problem.pool) == self.names

    def _fit(self, labelled: Numbers) -> Method:
        name, *settings = self.method.split(":")
        given = np.full(len(self.truth), UNKNOWN)
        given[labelled] = self.truth[labelled]
        told = replace(self.problem, given=given)
        told._learned.update(self.problem._learned)  # preparation does not use labels of the pool
        fitted = create(name, **parse_assignments(settings)).fit(told)
        self.problem._learned.update(told._learned)
        return fitted

    def outcome(self, labelled: Numbers) -> Outcome:
        """The accuracy on the others if some inputs are labelled."""
        after = self._fit(labelled).predict(self.problem.pool) == self.names
        return Outcome(*(100 * float(np.delete(right, labelled).mean()) for right in (after, self.before)))

    def suggested(self, count: int, labelled: Numbers) -> Numbers:
        """These images and `count` more."""
        fitted = self._fit(labelled)
        _, values = top_classes(fitted.scores(self.problem.pool), self.problem.classes, "unseen", 2)
        more = suggest(fitted.embed(self.problem.pool), values[:, 1] - values[:, 0], count, labelled)
        return np.concatenate([labelled, more])

    def random(self, count: int) -> list[Outcome]:
        """The results of random choice, draw by draw."""
        orders = [np.random.default_rng(draw).permutation(len(self.truth)) for draw in range(RANDOM)]
        return [self.outcome(order[:count]) for order in orders]


def row(title: str, trials: Sequence[Trial]) -> list[str]:
    """All choices on problems of one kind."""
    first = [trial.suggested(trial.classes, trial.nothing) for trial in trials]
    both = [trial.suggested(2 * trial.classes, trial.nothing) for trial in trials]
    more = [trial.suggested(trial.classes, chosen) for trial, chosen in zip(trials, first, strict=True)]
    cells = [
        f"{np.mean([100 * trial.before.mean() for trial in trials]):.1f}",
        _random(trials, 1),
        _chosen(trials, first),
        _random(trials, 2),
        _chosen(trials, both),
        _chosen(trials, more),
    ]
    print(title, *cells, sep=" | ", file=sys.stderr, flush=True)
    return [title, *cells]


def _chosen(trials: Sequence[Trial], choices: Sequence[Numbers]) -> str:
    outcomes = [trial.outcome(choice) for trial, choice in zip(trials, choices, strict=True)]
    after, before = np.mean(outcomes, axis=0)
    return f"{after:.1f} ({before:.1f})"


def _random(trials: Sequence[Trial], per_class: int) -> str:
    outcomes = np.array([trial.random(per_class * trial.classes) for trial in trials])
    after, before = outcomes.mean(axis=(0, 1))
    return f"{after:.1f} ± {outcomes[:, :, 0].std(axis=1, ddof=1).mean():.1f} ({before:.1f})"


def run(method: str, *, test: bool) -> Table:
    """All problems for one method."""
    table = Table(method.replace(":", " "), COLUMNS, notes=[NOTE])
    if test:
        table.rows.append(row("CUB, PS", [Trial(method, *_cub())]))
        return table
    table.rows.append(row("CUB's validation folds", [Trial(method, *_cub(fold=fold)) for fold in (1, 2, 3)]))
    for title, kind in KINDS.items():
        table.rows.append(row(title, [Trial(method, *drawn) for drawn in problems(kind)]))
    return table


def _cub(**options: Any) -> tuple[Problem, Numbers]:
    problem, answers = load("cub", features="efflite0.mat", **options)
    assert answers is not None
    return problem, answers.labels


if __name__ == "__main__":
    wanted = [argument for argument in sys.argv[1:] if argument != "--test"]
    for method in wanted or DEFAULT:
        print(run(method, test="--test" in sys.argv).markdown(), end="\n\n", flush=True)
