"""What makes a step cheaper that trains a whole backbone, as processor time of a photograph, forward and backward.

Each measurement runs in a process of its own: ``python -m benchmarks.backbone_step BACKBONE IMAGES STEPS WAY`` prints
what it took, as JSON. Weights and images are random, which makes no difference here.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.tables import Table
from benchmarks.timing import Settings
from pren.foundation.allocation import SET_BY_HAND, keep_all_memory, keep_memory
from pren.images import timm_backbone
from pren.images.backbones import create_backbone, find_backbone

WAYS = ("given back", "kept", "kept, bfloat16, torch's gradients", "kept, bfloat16")


def run(settings: Settings) -> list[Table]:
    """One table."""
    backbones, images, steps, turns = ["tf_efficientnet_lite0"], 64, 2, 2
    if settings.quick:
        backbones, images, steps, turns = ["test_efficientnet"], 4, 1, 1
    header = ["backbone", "memory, precision", "ms", "of it in the kernel", "of the first", "peak MB"]
    table = Table(f"Processor time of a photograph in training, {images} at a time, one thread", header)
    for backbone in backbones:
        taken: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(turns):
            for way in WAYS:
                taken[way].append(_in_a_process(backbone, images, steps, way))
        first = _median(taken[WAYS[0]], "ms")
        for way in WAYS:
            ms, kernel, peak = (_median(taken[way], key) for key in ("ms", "kernel", "peak"))
            table.rows.append((backbone, way, f"{ms:.0f}", f"{kernel:.0f}", f"{ms / first:.2f}", f"{peak:.0f}"))
    table.notes.append(f"Medians of {turns} processes each, in turns, of {steps} steps after as many that warm up.")
    return [table]


def _median(taken: list[dict[str, float]], key: str) -> float:
    return statistics.median(each[key] for each in taken)


def _in_a_process(backbone: str, images: int, steps: int, way: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.backbone_step", backbone, str(images), str(steps), way]
    plain = {name: value for name, value in os.environ.items() if name not in SET_BY_HAND}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=plain, cwd=Path(__file__).parents[1])
    taken: dict[str, float] = json.loads(done.stdout)
    return taken


def _measure(backbone: str, images: int, steps: int, way: str) -> dict[str, float]:
    if not keep_memory() or ("kept" in way and not keep_all_memory()):
        raise SystemExit("This system's memory cannot be kept.")
    torch.set_num_threads(1)
    shape = find_backbone(backbone).preprocessing("random").sample_shape
    network, _ = create_backbone(backbone, shape, 0, precision="bfloat16" if "bfloat16" in way else "float32")
    network.train()
    batch = torch.rand(images, *shape)
    torchs = patch.object(timm_backbone, "OwnGradients", nullcontext) if "torch's" in way else nullcontext()
    with torchs:
        _times(steps, lambda: network(batch).square().sum().backward())
        before = resource.getrusage(resource.RUSAGE_SELF)
        _times(steps, lambda: network(batch).square().sum().backward())
        after = resource.getrusage(resource.RUSAGE_SELF)
    user, kernel = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    each = 1000 / images / steps
    return {"ms": each * (user + kernel), "kernel": each * kernel, "peak": after.ru_maxrss / 1000}


def _times(count: int, do: Callable[[], Any]) -> None:
    for _ in range(count):
        do()


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])))
