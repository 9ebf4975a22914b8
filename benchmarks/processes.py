"""One process against two on the cores of one machine: seconds per round, from the runs' own timings.csv.

Real ``pren fit`` commands take turns; start-up and the first training are left out.
"""

from __future__ import annotations

import csv
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.tables import Table
from benchmarks.timing import Settings


def run(settings: Settings) -> list[Table]:
    """One table."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    turns, rounds = (1, 1) if settings.quick else (2, 2)
    table = Table(
        f"One process against two, {cores} cores in all",
        ["what", "1 process: s per round", "2 processes: s per round", "1 / 2"],
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        features = _write_features(folder / "features.npz", settings.quick)
        tiny: dict[str, object] = {"heads": 4, "hidden": [8], "batches": 2, "dim": 7} if settings.quick else {}
        cases: dict[str, tuple[str, dict[str, object]]] = {
            f"heads apart: K=50 on features {features}": (
                str(folder / "features.npz"),
                tiny,
            ),
            "gradients averaged: `numbers`, CNN and heads": ("numbers", tiny),
        }
        for title, (data, params) in list(cases.items())[: 1 if settings.quick else None]:
            seconds: dict[int, list[float]] = {1: [], 2: []}
            for turn in range(turns):
                for devices, times in seconds.items():
                    out = folder / f"{len(table.rows)}-{turn}-{devices}"
                    times += _seconds_per_round(data, {**params, "rounds": rounds, "initial_batches": 10}, devices, out)
            one, two = (statistics.median(times) for times in seconds.values())
            table.rows.append((title, f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}"))
    table.notes.append(
        f"Medians of {turns * rounds} rounds (100 batches of 64, prediction of the pool, saving). The threads of torch "
        "are shared out: as many as there are cores for one process, half as many for each of two."
    )
    return [table]


def _write_features(path: Path, quick: bool) -> str:
    """Features in the sizes of CUB: 150 seen and 50 unseen classes, 2,967 images in the pool."""
    classes, seen, d, images, pool = (12, 8, 16, 96, 40) if quick else (200, 150, 1280, 7057, 2967)
    rng = np.random.default_rng(0)
    np.savez(
        path,
        features=rng.standard_normal((images, d), dtype=np.float32),
        labels=np.arange(images) % seen,
        signatures=rng.random((classes, 8 if quick else 312)),
        pool=rng.standard_normal((pool, d), dtype=np.float32),
    )
    return f"({images:,}, {d})"


def _seconds_per_round(data: str, params: dict[str, object], devices: int, out: Path) -> list[float]:
    assignments = [f"--set={key}={value}" for key, value in params.items()]
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    command = [
        sys.executable,
        "-m",
        "pren.cli",
        "fit",
        data,
        "--method=pren",
        *assignments,
        "--devices",
        str(devices),
        "--out",
        str(out),
    ]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    with (out / "timings.csv").open(newline="", encoding="utf-8") as file:
        return [float(row["seconds"]) for row in csv.DictReader(file)][1:]
