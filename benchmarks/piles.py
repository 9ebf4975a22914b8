"""A pile with seen classes in it that is not said to have any: ``python -m benchmarks.piles FIRST LAST``.

Draws FIRST to LAST - 1 from CUB's 150 seen classes, described by attributes or by sentences. The pool holds all
photographs of the unseen classes and a share of those of each seen class. Per cent of the whole pool that is right
with ``--setting zsl``, ``auto`` and ``gzsl``, and which share ``auto`` takes to be of seen classes. PREN_DATA says
where CUB is.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from benchmarks.names import KINDS, Numbers, problems
from benchmarks.tables import Table
from pren.methods.registry import create
from pren.problem import Problem, Setting
from pren.problem.inputs import ArrayInputs
from pren.runs.piles import settled
from pren.trust.mixed import Mixed

SHARES = (0.0, 0.1, 0.4)  # of the labelled photographs that are in the pool instead
SETTINGS: tuple[Setting, ...] = ("zsl", "gzsl")
DESCRIPTIONS = ("attributes", "sentences")


def pile(problem: Problem, truth: Numbers, share: float, draw: int) -> tuple[Problem, Numbers]:
    """The problem with a share of the photographs of seen classes in its pool, and the classes of the pool."""
    rng = np.random.default_rng([draw, 6])
    labels = problem.labels
    moved = np.zeros(len(labels), dtype=bool)
    for row in np.unique(labels):
        own = np.flatnonzero(labels == row)
        moved[rng.choice(own, round(share * len(own)), replace=False)] = True
    inputs, pool = (part[np.arange(len(part))].numpy() for part in (problem.train, problem.pool))
    order = rng.permutation(len(pool) + int(moved.sum()))
    mixed_pool = np.concatenate([pool, inputs[moved]])[order]
    mixed = replace(problem, train=ArrayInputs(inputs[~moved]), labels=labels[~moved], pool=ArrayInputs(mixed_pool))
    return mixed, np.concatenate([truth, labels[moved]])[order]


def right(pile: Problem, setting: Setting, truth: Numbers) -> float:
    """Per cent of the pool that is right in a setting."""
    problem = replace(pile, setting=setting)
    problem._learned.update(pile._learned)  # preparation knows no setting
    found = create("pren-vote").fit(problem).predict(problem.pool)
    pile._learned.update(problem._learned)
    return 100 * float((found == problem.classes.named(truth)).mean())


def of_draw(seen: int, unseen: int, draw: int, share: float) -> dict[str, list[float]]:
    """For each description: the share of seen classes, what is found of it, whether it is said, and what is right."""
    described = {name: (problem, truth) for name, problem, truth in problems(seen, unseen, draw)}
    first, classes = pile(*described[DESCRIPTIONS[0]], share, draw)
    first = replace(first, setting="gzsl")
    found, _ = settled(first, None)
    estimate = Mixed.model_validate(found.source["mixed"])
    known = [float((classes < seen).mean()), estimate.share, float(estimate.likely)]
    rows = {}
    for name in DESCRIPTIONS:
        other = first.redescribed(described[name][0].classes.signatures, {})
        results = {setting: right(other, setting, classes) for setting in SETTINGS}
        rows[name] = [*known, results["zsl"], results[found.setting], results["gzsl"]]
    return rows


def run(first: int, last: int) -> Table:
    """One row for each kind of problem, description and share."""
    columns = ["classes", "of seen photographs in the pool", "share of the pool", "found", "called mixed"]
    table = Table(f"Draws {first} to {last - 1}: means", [*columns, "zsl", "auto", "gzsl"])
    for kind, (seen, unseen) in KINDS.items():
        for share in SHARES:
            draws = [of_draw(seen, unseen, draw, share) for draw in range(first, last)]
            for name in DESCRIPTIONS:
                means = np.mean([rows[name] for rows in draws], axis=0)
                shares = [f"{100 * value:.0f} %" for value in (share, *means[:3])]
                table.rows.append((f"{kind}, {name}", *shares, *(f"{value:.1f}" for value in means[3:])))
                print(*table.rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return table


if __name__ == "__main__":
    print(run(int(sys.argv[1]), int(sys.argv[2])).markdown())
