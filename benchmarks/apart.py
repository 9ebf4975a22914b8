"""Backbones apart, each with groups and names of its own, or side by side: ``python -m benchmarks.apart FIRST LAST``.

Draws FIRST to LAST - 1 of `benchmarks.names`, on CUB's photographs through backbones trained on ImageNet-1k. "Side by
side" is what ``--backbone a+b`` does; "apart" is the mean of the chances that PrEN-Vote on each backbone alone gives
every class. PREN_DATA says where CUB is, and WEIGHTS names a folder with the weights of EfficientNet-B3.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import pren
from benchmarks.names import KINDS, Numbers, problems
from benchmarks.tables import Table
from pren.images.extraction import Extractor
from pren.methods.registry import create
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs, Inputs

BACKBONES = ("tf_efficientnet_lite0", "tf_efficientnet_lite1", "tf_efficientnet_lite2", "efficientnet_b3")
SIDE_BY_SIDE, APART = "side by side", "apart"
Values = NDArray[np.float32]


def everything(inputs: Inputs) -> Values:
    """(N, d)."""
    found: Values = inputs[np.arange(len(inputs))].numpy()
    return found


class Photographs:
    """CUB's labelled photographs: unit features (N, d) by each backbone, found by those of ``efflite0.mat``."""

    def __init__(self) -> None:
        published = pren.load("cub", features="efflite0.mat")[0]
        self._row = {row.tobytes(): place for place, row in enumerate(everything(published.train))}
        self.features: list[Values] = []
        for name in BACKBONES:
            how = Extractor(backbone=name, weights=os.environ.get("WEIGHTS"))
            problem, _ = pren.freeze(*pren.load("cub", images=True), how)
            assert (problem.labels == published.labels).all()
            found = everything(problem.train)
            self.features.append(found / np.linalg.norm(found, axis=1, keepdims=True))

    def seen_by(self, features: Values, problem: Problem) -> Problem:
        """A draw, with other features of the same photographs."""
        parts = (everything(inputs) for inputs in (problem.train, problem.pool))
        train, pool = (ArrayInputs(features[[self._row[row.tobytes()] for row in part]]) for part in parts)
        return replace(problem, train=train, pool=pool)


def right(photographs: Photographs, problem: Problem, truth: Numbers) -> Iterator[tuple[str, float]]:
    """Per cent of the pool that is right, by each backbone, by all side by side, and by all apart."""
    chances = []
    for features in (*photographs.features, np.concatenate(photographs.features, axis=1)):
        seen = photographs.seen_by(features, problem)
        chances.append(create("pren-vote").fit(seen).predict_proba(seen.pool))
    chances.append(np.mean(chances[: len(BACKBONES)], axis=0))
    for name, own in zip((*BACKBONES, SIDE_BY_SIDE, APART), chances, strict=True):
        yield name, 100 * float((own.argmax(axis=1) == truth).mean())


def run(first: int, last: int) -> Table:
    """Means and worst draws of every cell."""
    photographs = Photographs()
    found: dict[str, dict[str, list[float]]] = {}
    for kind, (seen, unseen) in KINDS.items():
        for draw in range(first, last):
            for description, problem, truth in problems(seen, unseen, draw):
                own = found.setdefault(f"{kind}, {description}", {})
                for name, value in right(photographs, problem, truth):
                    own.setdefault(name, []).append(value)
            print(kind, draw, file=sys.stderr, flush=True)
    title = f"Top-1 of PrEN-Vote (per cent), draws {first} to {last - 1}: mean (worst)"
    table = Table(title, ["cell", *BACKBONES, SIDE_BY_SIDE, APART])
    for cell, own in found.items():
        table.rows.append((cell, *(f"{np.mean(values):.1f} ({min(values):.1f})" for values in own.values())))
    return table


if __name__ == "__main__":
    print(run(int(sys.argv[1]), int(sys.argv[2])).markdown())
