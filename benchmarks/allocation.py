"""What it is worth that `pren` keeps the memory that a network frees, as processor time of a photograph.

Each measurement runs in a process of its own: ``python -m benchmarks.allocation BACKBONE IMAGES WAY`` prints what it
took, as JSON. Weights are random and images grey, which makes no difference here.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.tables import Table
from benchmarks.timing import Settings
from pren.foundation.allocation import SET_BY_HAND, keep_memory
from pren.images.extraction import Extractor, FrozenBackbone

WAYS = ("given-back", "kept")


def run(settings: Settings) -> list[Table]:
    """One table."""
    backbones, images, turns = ["tf_efficientnet_lite0", "tf_efficientnet_lite1", "resnet34"], 96, 3
    if settings.quick:
        backbones, images, turns = ["test_efficientnet"], 4, 1
    table = Table(
        "Processor time of a photograph, one thread, where freed memory is given back and where it is kept",
        [
            "backbone",
            "given back: ms",
            "of it in the kernel",
            "kept: ms",
            "kept / given back",
            "given back: MB",
            "kept: MB",
        ],
    )
    for backbone in backbones:
        taken: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(turns):
            for way in WAYS:
                taken[way].append(_in_a_process(backbone, images, way))
        before, after = (_medians(taken[way]) for way in WAYS)
        table.rows.append(
            (
                backbone,
                f"{before['ms']:.1f}",
                f"{before['kernel']:.1f}",
                f"{after['ms']:.1f}",
                f"{after['ms'] / before['ms']:.2f}",
                f"{before['peak']:.0f}",
                f"{after['peak']:.0f}",
            )
        )
    table.notes.append(f"Medians of {turns} processes each, in turns; the peak of a process with all its libraries.")
    return [table]


def _medians(taken: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(each[key] for each in taken) for key in taken[0]}


def _in_a_process(backbone: str, images: int, way: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.allocation", backbone, str(images), way]
    plain = {name: value for name, value in os.environ.items() if name not in SET_BY_HAND}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=plain, cwd=Path(__file__).parents[1])
    taken: dict[str, float] = json.loads(done.stdout)
    return taken


def _measure(backbone: str, images: int, way: str) -> dict[str, float]:
    if way == "kept" and not keep_memory():
        raise SystemExit("This system's memory cannot be kept.")
    torch.set_num_threads(1)
    frozen = FrozenBackbone.load(Extractor(backbone=backbone, weights="random"))
    levels = torch.zeros((images, *frozen.preprocessing.sample_shape), dtype=torch.uint8)
    frozen(levels[:16], torch.device("cpu"))
    before = resource.getrusage(resource.RUSAGE_SELF)
    frozen(levels, torch.device("cpu"))
    after = resource.getrusage(resource.RUSAGE_SELF)
    user, kernel = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    each = 1000 / images
    return {"ms": each * (user + kernel), "kernel": each * kernel, "peak": after.ru_maxrss / 1000}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
