"""Which of two descriptions is better, and whether seen classes can tell: ``python -m benchmarks.sources FIRST LAST``.

Draws FIRST to LAST - 1 as for `benchmarks.names`, described by 15 attributes as yes or no, by sentences, by both
together with three weights, and by 312 attributes. "Chosen" is what `pren fit` takes of the first five. PREN_DATA says
where CUB is.
"""

from __future__ import annotations

import sys
from itertools import combinations
from typing import NamedTuple

import numpy as np

from benchmarks.names import CHANGED, DESCRIPTIONS, KINDS, Numbers, joined, problems
from benchmarks.tables import Table
from pren.methods.class_statistics import class_statistics
from pren.methods.gaussian_process import told
from pren.methods.preparation import PREPARATIONS
from pren.methods.registry import create
from pren.problem import Problem
from pren.trust.sources import best_sources

RATIOS = {"both, 2 : 1": (2.0, 1.0), "both, 1 : 1": (1.0, 1.0), "both, 1 : 2": (1.0, 2.0)}
COLUMNS = [*DESCRIPTIONS, *RATIOS, "chosen"]


class Result(NamedTuple):
    """What a description comes to: how much is right, and how much it tells of where seen classes lie."""

    right: float
    told: float


def result(problem: Problem, truth: Numbers) -> Result:
    """Of `pren-vote`."""
    seen = problem.classes.seen
    prepared = problem.once("features=whitened", lambda: PREPARATIONS["whitened"].fit(problem))
    means = class_statistics(prepared.of(problem.train), problem.labels, len(seen))[0][seen]
    found = create("pren-vote").fit(problem).predict(problem.pool)
    right = 100 * float((found == problem.classes.named(truth)).mean())
    return Result(right, told(problem.classes.signatures[seen], means))


def of_draw(seen: int, unseen: int, draw: int) -> dict[str, Result]:
    """One draw: the result of each description, and of the one that is chosen."""
    described = [
        (name, problem, truth) for name, problem, truth in problems(seen, unseen, draw) if name in DESCRIPTIONS
    ]
    (_, problem, truth), tables = described[0], [each.classes.signatures for _, each, _ in described[1:]]
    found = {name: result(each, truth) for name, each, _ in described}
    found |= {name: result(joined(problem, tables, weights), truth) for name, weights in RATIOS.items()}
    chosen = best_sources(joined(problem, tables, (1.0, 1.0)), DESCRIPTIONS[1:]).chosen
    name = next((name for name, weights in RATIOS.items() if weights == chosen.weights), chosen.names[0])
    return {**found, "chosen": found[name]}


def run(first: int, last: int) -> tuple[Table, Table]:
    """Top-1 by description, and how often seen classes know which of two descriptions is better."""
    title = f"Top-1 of pren-vote (per cent), draws {first} to {last - 1}: mean (worst tenth)"
    table = Table(title, ["classes", *COLUMNS])
    pairs = [*combinations(DESCRIPTIONS, 2), *((one, "both, 1 : 1") for one in DESCRIPTIONS[1:])]
    sides = Table("Pairs that differ by more than 5 points: how often the better one tells more", ["pair", *KINDS])
    rows: dict[tuple[str, str], list[str]] = {pair: [] for pair in pairs}
    for kind, (seen, unseen) in KINDS.items():
        found = [of_draw(seen, unseen, draw) for draw in range(first, last)]
        cells = [np.sort([each[name].right for each in found]) for name in COLUMNS]
        worst = max(1, len(found) // 10)
        table.rows.append((kind, *(f"{cell.mean():.1f} ({cell[:worst].mean():.1f})" for cell in cells)))
        for (one, other), row in rows.items():
            apart = [(each[one].right - each[other].right, each[one].told - each[other].told) for each in found]
            agree = [(right > 0) == (more > 0) for right, more in apart if abs(right) > CHANGED]
            row.append(f"{sum(agree)} of {len(agree)}")
        print(kind, file=sys.stderr, flush=True)
    sides.rows = [(" or ".join(pair), *row) for pair, row in rows.items()]
    return table, sides


if __name__ == "__main__":
    for table in run(int(sys.argv[1]), int(sys.argv[2])):
        print(table.markdown(), end="\n\n")
