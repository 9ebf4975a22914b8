"""Peak memory of a prediction: it must not grow with the pool beyond the inputs and the scores themselves.

Each pool size runs in a process of its own: ``python -m benchmarks.memory IMAGES`` prints what it took, as JSON.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
from torch import nn

from benchmarks.ensembles import Size, batched
from benchmarks.tables import Table
from benchmarks.timing import Settings
from pren.core.voting import Network
from pren.problem.inputs import ArrayInputs
from pren.research.cells import peak_memory
from pren.training.chunks import apply, images_for_heads
from pren.training.processes import single_process

MB = 1e6


def run(settings: Settings) -> list[Table]:
    """One table."""
    size, pools, processes = Size(features=1280), [2000, 20_000], 3
    if settings.quick:
        size, pools, processes = Size(4, 16, (8, 8), 6, 10), [300], 1
    table = Table(
        f"Peak memory (RSS) of scoring a pool, K={size.heads}, d={size.features}, {size.classes} classes",
        ["images", "peak MB", "of it inputs MB", "of it scores MB", "everything else MB"],
    )
    rest = []
    for images in pools:
        taken = [_in_a_process(images, size) for _ in range(processes)]
        peak = statistics.median(one["peak"] for one in taken)
        inputs, scores = taken[0]["inputs"], taken[0]["scores"]
        rest.append(peak - inputs - scores)
        table.rows.append((f"{images:,}", *(f"{figure / MB:.0f}" for figure in (peak, inputs, scores, rest[-1]))))
    table.notes.append(
        f"Medians of {processes} processes for each pool. From the first to the last row, everything else grows by "
        f"{(rest[-1] - rest[0]) / MB:.0f} MB."
    )
    return [table]


def _in_a_process(images: int, size: Size) -> dict[str, int]:
    """`_predict` in its own process."""
    command = [sys.executable, "-m", "benchmarks.memory", str(images), json.dumps(asdict(size))]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    taken: dict[str, int] = json.loads(answer.stdout)
    return taken


def _predict(images: int, size: Size) -> dict[str, int]:
    """Score a pool in this process, and print its memory."""
    network = Network(nn.Identity(), batched(size))
    features = np.random.default_rng(0).standard_normal((images, size.features), dtype=np.float32)
    at_once = images_for_heads(network.ensemble)
    scores = apply(single_process("cpu"), network, ArrayInputs(features), at_once)
    return {"peak": peak_memory(), "inputs": features.nbytes, "scores": scores.nbytes}


if __name__ == "__main__":
    print(json.dumps(_predict(int(sys.argv[1]), Size(**json.loads(sys.argv[2])))))
