"""What a large pool costs: time and memory of methods that look at all of it must grow linearly.

Each case runs in a process of its own: ``python -m benchmarks.pools METHOD IMAGES CLASSES FEATURES`` prints what it
took, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Table
from benchmarks.timing import Settings
from pren.data import load
from pren.foundation.errors import PrenError
from pren.methods.registry import create
from pren.problem import Problem
from pren.research.cells import peak_memory

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "pren-pool": ("pren-pool", {}),
    "pren-pool, balance=0.5": ("pren-pool", {"balance": 0.5}),
    "soft-kmeans": ("ridge-s2v", {"features": "whitened", "refinement": "soft-kmeans"}),
    "label-propagation": ("ridge-s2v", {"features": "whitened", "refinement": "label-propagation"}),
}
MB = 1e6
Features = NDArray[np.float32]


def run(settings: Settings) -> list[Table]:
    """One table."""
    cases = [(3000, 50), (30_000, 50), (300_000, 50), (3000, 500), (30_000, 500), (300_000, 500)]
    if settings.quick:
        cases = [(100, 5)]
    table = Table(
        "Fitting a pool: 100 seen classes, CUB's features moved by class where CUB is at hand, one thread",
        ["what looks at the pool", "images", "unseen classes", "fit, CPU s", "peak MB", "of it inputs MB"],
        notes=["One run each. Whitening, which looks at all images once, is a part of it."],
    )
    for method in METHODS:
        for images, classes in cases:
            taken = _in_a_process(method, images, classes, 16 if settings.quick else 1280)
            sizes = (f"{images:,}", f"{classes}", f"{taken['seconds']:.1f}")
            table.rows.append((method, *sizes, f"{taken['peak'] / MB:,.0f}", f"{taken['inputs'] / MB:,.0f}"))
    return [table]


def _in_a_process(*arguments: object) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.pools", *map(str, arguments)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    taken: dict[str, float] = json.loads(answer.stdout)
    return taken


def _measure(method: str, images: int, classes: int, features: int) -> dict[str, float]:
    problem, size = made_problem(images, classes, features)
    name, params = METHODS[method]
    start = time.process_time()
    create(name, **params).fit(problem)
    return {"seconds": time.process_time() - start, "peak": peak_memory(), "inputs": size}


def made_problem(images: int, classes: int, features: int) -> tuple[Problem, int]:
    """100 seen classes, a pool of this many inputs of unseen ones, and the bytes of the features."""
    rng = np.random.default_rng(0)
    real = _real(features)
    known = rng.gamma(1.0, size=(5000, features)).astype(np.float32) if real is None else real
    places = rng.standard_normal((100 + classes, 312))
    to_features = rng.standard_normal((312, features)).astype(np.float32)
    centres = (places @ to_features).astype(np.float32) * known.std() / 10

    def drawn(labels: NDArray[np.int64]) -> Features:
        x = known[rng.integers(len(known), size=len(labels))]
        x += centres[labels]
        return np.abs(x, out=x)

    labels = np.arange(5000) % 100
    train, pool = drawn(labels), drawn(100 + np.arange(images) % classes)
    return Problem.from_arrays(train, labels, places, pool), train.nbytes + pool.nbytes


def _real(features: int) -> Features | None:
    try:
        problem, _ = load("cub", features="efflite0.mat")
    except PrenError:
        return None
    x = problem.train[np.arange(len(problem.train))].numpy()
    return x if x.shape[1] == features else None


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    print(json.dumps(_measure(sys.argv[1], *map(int, sys.argv[2:]))))
