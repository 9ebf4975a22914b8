"""Small problems, as people have them, drawn from CUB's 150 seen classes: ``python -m benchmarks.drawn [METHOD ...]``.

METHOD is a name with parameters, such as ``gfzsl:features=whitened``. What `pren-pool` does by default was chosen on
these problems and on CUB's validation folds; no test class has a part in them. PREN_DATA says where CUB is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Table
from pren.cli.options import parse_assignments
from pren.data import load
from pren.methods.registry import create
from pren.problem import ClassTable, Problem
from pren.problem.inputs import ArrayInputs

DEFAULT = [
    "pren-pool",
    "pren-pool:balance=0.5",
    "pren-pool:evidence=1",
    "pren-pool:caution=0",
    "pren-pool:features=l2",
    "ridge-s2v",
    "ridge-s2v:features=whitened:refinement=soft-kmeans",
    "gfzsl",
    "gfzsl:features=whitened",
    "dcl",
    "sje",
    "sje:features=whitened:refinement=soft-kmeans",
    "eszsl",
]
Numbers = NDArray[np.int64]
Sizes = Callable[[np.random.Generator], int]


@dataclass(frozen=True)
class Kind:
    """Problems of one kind: how many seen and unseen classes, how many images of each, and how many draws."""

    seen: int
    unseen: int
    draws: int
    labelled: Sizes = lambda rng: 99
    pool: Sizes = lambda rng: 99
    signatures: str = "attributes"


def five_to_sixty(rng: np.random.Generator) -> int:
    """Typical sizes of folders of photographs."""
    return int(rng.integers(5, 60))


KINDS = {
    "100 + 50": Kind(100, 50, 3),
    "100 + 50, half of the pool 1:10": Kind(100, 50, 3, pool=lambda rng: 60 if rng.random() < 0.5 else 5),
    "82 + 20": Kind(82, 20, 3),
    "82 + 20, sentences": Kind(82, 20, 3, signatures="sentences"),
    "60 + 12, 5 to 60 images": Kind(60, 12, 4, five_to_sixty, five_to_sixty),
    "32 + 8": Kind(32, 8, 6),
    "27 + 6": Kind(27, 6, 6),
    "20 + 10": Kind(20, 10, 6),
    "40 + 8, 4 to 7 labelled": Kind(40, 8, 4, lambda rng: int(rng.integers(4, 8)), lambda rng: 30),
    "10 + 4, 12 images": Kind(10, 4, 10, lambda rng: 12, lambda rng: 12),
}


@cache
def _cub(signatures: str) -> Problem:
    return load("cub", features="efflite0.mat", signatures=signatures)[0]


def problems(kind: Kind) -> Iterator[tuple[Problem, Numbers]]:
    """Draw problems of a kind, each with the classes of its pool."""
    whole = _cub(kind.signatures)
    classes = np.unique(whole.labels)
    for draw in range(kind.draws):
        rng = np.random.default_rng([kind.seen, kind.unseen, draw])
        chosen = rng.permutation(classes)[: kind.seen + kind.unseen]
        seen = np.arange(len(chosen)) < kind.seen
        images, labels = [], []
        for place, row in enumerate(chosen):
            mine = rng.permutation(np.flatnonzero(whole.labels == row))
            mine = mine[: (kind.labelled if seen[place] else kind.pool)(rng)]
            images.append(mine)
            labels.append(np.full(len(mine), place))
        order = rng.permutation(sum(map(len, images)))
        image, label = np.concatenate(images)[order], np.concatenate(labels)[order]
        pool = label >= kind.seen
        table = ClassTable(
            tuple(whole.classes.names[row] for row in chosen), whole.classes.signatures[chosen], seen, True
        )
        train, unlabelled = (ArrayInputs(whole.train[image[part]].numpy()) for part in (~pool, pool))
        yield Problem(train, label[~pool], unlabelled, table), label[pool]


def run(methods: list[str]) -> Table:
    """Mean Top-1 of methods on every kind."""
    table = Table(
        "Top-1 (per cent) on problems drawn from CUB's seen classes (seen + unseen): mean and worst of the draws",
        ["method", *KINDS],
    )
    figures: dict[str, list[str]] = {method: [] for method in methods}
    for kind in KINDS.values():
        drawn = list(problems(kind))
        for method, cells in figures.items():
            name, *settings = method.split(":")
            params = parse_assignments(settings)
            right = [
                100 * float((fitted.predict(problem.pool) == problem.classes.named(truth)).mean())
                for problem, truth in drawn
                for fitted in [create(name, **params).fit(problem)]
            ]
            cells.append(f"{np.mean(right):.1f} ({min(right):.0f})")
            print(method, cells[-1], file=sys.stderr, flush=True)
    table.rows += [(method.replace(":", " "), *cells) for method, cells in figures.items()]
    return table


if __name__ == "__main__":
    print(run(sys.argv[1:] or DEFAULT).markdown())
