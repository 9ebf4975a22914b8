"""How the cost grows when heads, classes or images double: at most linearly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from torch import nn

from benchmarks.ensembles import Size, batched
from benchmarks.tables import Table
from benchmarks.timing import Settings, interleave
from benchmarks.training_step import ADAM, Trainer
from pren.core.voting import Network
from pren.problem.inputs import ArrayInputs
from pren.training.chunks import apply, images_for_heads
from pren.training.processes import single_process


def run(settings: Settings) -> list[Table]:
    """One table."""
    base, pool, rounds, calls = Size(heads=25, features=1280), 1000, 5, 2
    if settings.quick:
        base, pool, rounds, calls = Size(2, 16, (8, 8), 6, 10, 8), 100, 1, 1
    cases = {
        "heads": [(replace(base, heads=base.heads * n), pool) for n in (1, 2, 4)],
        "classes": [(replace(base, classes=base.classes * n), pool) for n in (1, 2, 4)],
        "images (batch, pool)": [(replace(base, batch=base.batch * n), pool * n) for n in (1, 2, 4)],
    }
    table = Table(
        f"Cost when one thing doubles, from K={base.heads}, {base.classes} classes, batch {base.batch}, "
        f"{pool:,} images to score, d={base.features}",
        ["what", "training step ms", "ratios", "prediction ms", "ratios"],
        notes=["Medians at one, two and four times the size, and the ratios of neighbours: 2 is linear."],
    )
    for what, sizes in cases.items():
        columns = []
        for make in (_step, _prediction):
            tasks = {str(index): make(size, images, settings) for index, (size, images) in enumerate(sizes)}
            times = [timing.median for timing in interleave(tasks, settings, rounds, calls).values()]
            columns += [
                ", ".join(f"{seconds * 1e3:.0f}" for seconds in times),
                ", ".join(f"{b / a:.2f}" for a, b in pairwise(times)),
            ]
        table.rows.append((what, *columns))
    return [table]


def _step(size: Size, images: int, settings: Settings) -> Callable[[], object]:
    return Trainer(batched(size), size, ADAM["fused"], settings)


def _prediction(size: Size, images: int, settings: Settings) -> Callable[[], object]:
    network = Network(nn.Identity(), batched(size))
    features = np.random.default_rng(0).standard_normal((images, size.features), dtype=np.float32)
    inputs, fabric = ArrayInputs(features), single_process("cpu")
    return lambda: apply(fabric, network, inputs, images_for_heads(network.ensemble))
