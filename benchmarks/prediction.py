"""Scores of many images in chunks, against one image at a time."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.ensembles import Size, batched
from benchmarks.tables import Table
from benchmarks.timing import Settings, interleave
from pren.core.voting import Network
from pren.problem.inputs import ArrayInputs
from pren.training.chunks import apply, images_for_heads
from pren.training.processes import single_process


def run(settings: Settings) -> list[Table]:
    """One table."""
    size, images, sample, rounds = Size(features=1280), 10_000, 100, 3
    if settings.quick:
        size, images, sample, rounds = Size(4, 16, (8, 8), 6, 10), 300, 10, 1
    fabric = single_process("cpu")
    network = Network(nn.Identity(), batched(size))
    features = np.random.default_rng(0).standard_normal((images, size.features), dtype=np.float32)
    inputs = ArrayInputs(features)

    @torch.inference_mode()
    def one_by_one() -> NDArray[np.float64]:
        rows = [torch.from_numpy(features[i : i + 1]) for i in range(sample)]
        return torch.cat([network(row) for row in rows]).numpy()

    def in_chunks() -> NDArray[np.float64]:
        return apply(fabric, network, inputs, images_for_heads(network.ensemble))

    if not np.allclose(in_chunks()[:sample], one_by_one(), atol=1e-4):
        raise AssertionError("the two ways disagree")
    times = interleave({"chunks": in_chunks, "single": one_by_one}, settings, rounds, settle=0)
    chunks, single = times["chunks"].median, times["single"].median * images / sample
    table = Table(
        f"Scores of {images:,} images, K={size.heads}, d={size.features}, {size.classes} classes",
        ["way", "seconds", "images/s", "times faster"],
        [
            ("in chunks", f"{chunks:.2f}", f"{images / chunks:.0f}", f"{single / chunks:.1f}"),
            ("one image at a time", f"{single:.2f}", f"{images / single:.0f}", "1.0"),
        ],
        [f"Medians. One at a time: timed on {sample} images and scaled. Both ways give the same scores."],
    )
    return [table]
