"""Engines: what a photograph costs from its file to its features, through torch and through OpenVINO, in turns.

On CUB's photographs where ``PREN_DATA`` has them, otherwise on made ones: as they are, and enlarged to 12 megapixels,
with noise as a sensor makes it. Weights are random, which makes no difference here. What counts is processor time of
all processes, so a busy machine hardly matters, and seconds.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.decoding import SIZE, enlarged
from benchmarks.extraction import photographs
from benchmarks.tables import Table
from benchmarks.timing import Settings
from pren.images.cache import FeatureCache
from pren.images.engines import HALF, OPENVINO, TORCH, EngineName, has_bfloat16, is_installed
from pren.images.extraction import WORKERS, Extractor, FrozenBackbone, extract
from pren.images.files import ImageFiles
from pren.images.folders import list_images
from pren.training.processes import single_process

BACKBONES = ("tf_efficientnet_lite0", "efficientnet_b3", "vit_small_patch14_dinov2")
NOISE = 4.0  # levels, of a camera in daylight


def run(settings: Settings) -> list[Table]:
    """One table."""
    names: tuple[str, ...] = BACKBONES
    count, few, turns, size = 64, 12, 3, SIZE
    if settings.quick:
        names, count, few, turns, size = ("test_efficientnet",), 3, 2, 1, (800, 600)
    engines: list[EngineName] = [TORCH]
    if is_installed():
        engines += [OPENVINO, HALF] if has_bfloat16() else [OPENVINO]
    table = Table(
        f"From files to features, {torch.get_num_threads()} thread(s) and {WORKERS} process(es) decoding",
        ["backbone", "photographs", "engine", "ms of a core", "times torch's", "photographs/s", "times torch's"],
        [],
        [f"Medians of {turns} turns over {count} photographs ({few} large ones), after one that is not counted."],
    )
    with tempfile.TemporaryDirectory() as name:
        small = photographs(Path(name), count)
        large = Path(name) / "large"
        large.mkdir()
        for number, file in enumerate(list_images(small)[:few]):
            (large / f"{number}.jpg").write_bytes(enlarged(small / file, size, NOISE))
        for backbone in names:
            parts = [
                FrozenBackbone.load(Extractor(backbone=backbone, weights="random", engine=each)) for each in engines
            ]
            for what, folder, number in (("224 x 224", small, count), (f"{size[0]} x {size[1]}", large, few)):
                files = ImageFiles(folder, list_images(folder)[:number])
                taken = _taken(files, parts, turns)
                for engine, (cost, wall) in zip(engines, taken, strict=True):
                    ratios = taken[0][0] / cost, taken[0][1] / wall
                    cells = f"{cost:.1f}", f"{ratios[0]:.1f}", f"{1e3 / wall:.0f}", f"{ratios[1]:.1f}"
                    table.rows.append((backbone, what, engine, *cells))
    return [table]


def _taken(files: ImageFiles, parts: list[FrozenBackbone], turns: int) -> list[tuple[float, float]]:
    """Milliseconds of processor time and of time for a photograph, by each engine, one after the other in each turn."""
    fabric = single_process("cpu")
    found: list[list[tuple[float, float]]] = [[] for _ in parts]
    for _ in range(turns + 1):
        for times, part in zip(found, parts, strict=True):
            with tempfile.TemporaryDirectory() as name:
                before, start = _processor(), time.perf_counter()
                extract(files, part, FeatureCache(name, part.facts, part.shape), fabric)
                wall, cost = time.perf_counter() - start, _processor() - before
                times.append((1e3 * cost / len(files), 1e3 * wall / len(files)))
    kept = [times[1:] for times in found]
    return [
        (statistics.median(cost for cost, _ in times), statistics.median(wall for _, wall in times)) for times in kept
    ]


def _processor() -> float:
    """Seconds of processor time of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])
