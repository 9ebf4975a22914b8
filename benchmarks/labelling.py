"""``pren predict``: its rate against the bare backbone, and its memory, which must not grow with the rows.

On photographs of CUB, as they are and enlarged to 12 megapixels, where ``PREN_DATA`` has them, otherwise on made ones.
Weights are random, which makes no difference here. Rows are features, each count in a process of its own: ``python -m
benchmarks.labelling COUNT WIDTH`` prints what it took, as JSON.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.decoding import SIZE, enlarged
from benchmarks.extraction import MB, Watch, photographs
from benchmarks.tables import Table
from benchmarks.timing import Settings
from pren.labelling import Wanted, label
from pren.methods.eszsl import ESZSL
from pren.predictor import Predictor
from pren.problem import ClassTable, Problem
from pren.vision.extraction import BATCH_ON_CPU, WORKERS, Extractor, FrozenBackbone
from pren.vision.folders import list_images
from pren.vision.images import ImageFiles
from pren.vision.photographs import freeze

CLASSES = 200


def run(settings: Settings) -> list[Table]:
    """Two tables."""
    backbone, sizes, counts, turns, width = "tf_efficientnet_lite0", {None: 320, SIZE: 160}, (10_000, 100_000), 3, 1280
    if settings.quick:
        backbone, sizes, counts, turns, width = "test_efficientnet", {None: 3, (800, 600): 2}, (50, 100), 1, 8
    rate = Table(
        f"Labels of photographs with {backbone} and ESZSL, {WORKERS} process(es) decoding",
        ["photographs", "how many", "bare forward pass: images/s", "labels: images/s", "labels / bare"],
    )
    with tempfile.TemporaryDirectory() as name:
        folder = photographs(Path(name), max(sizes.values()))
        for size, count in sizes.items():
            bare, fast = _rates(folder, size, count, turns, Extractor(backbone=backbone, weights="random"))
            what = "as they are" if size is None else f"{size[0]} x {size[1]}"
            rate.rows.append((what, f"{count}", f"{bare:.1f}", f"{fast:.1f}", f"{fast / bare:.2f}"))
    rate.notes.append(f"Medians of {turns} turns, the two in turns, from files to a table, nothing in the cache.")
    rows = Table(
        f"Labels of rows of features, {width} numbers each, {CLASSES} classes",
        ["rows", "seconds", "rows/s", "peak memory: MB", "before: MB"],
        [],
        ["Memory without pages of the file of features, which is mapped and which the system can take back."],
    )
    for count in counts:
        command = [sys.executable, "-m", "benchmarks.labelling", str(count), str(width)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
        taken: dict[str, float] = json.loads(answer.stdout)
        cells = (f"{taken['seconds']:.1f}", f"{count / taken['seconds']:.0f}")
        rows.rows.append((f"{count:,}", *cells, f"{taken['peak'] / MB:.0f}", f"{taken['before'] / MB:.0f}"))
    return [rate, rows]


def _rates(
    folder: Path, size: tuple[int, int] | None, count: int, turns: int, extractor: Extractor
) -> tuple[float, float]:
    """Images per second of the bare network, and from files to a table."""
    names = list_images(folder)[:count]
    frozen = FrozenBackbone.load(extractor)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for number, file in enumerate(names):
            content = (folder / file).read_bytes() if size is None else enlarged(folder / file, size)
            (place / f"{number}.jpg").write_bytes(content)
        files = ImageFiles(place, [f"{number}.jpg" for number in range(count)])
        predictor = _photograph_model(files, extractor, place)
        batch, _ = files.prepared(frozen.preprocessing).decoded(range(min(BATCH_ON_CPU, count)))
        bare, fast = [], []
        for turn in range(turns):
            fresh = Predictor(predictor.model, cache=place / f"cache-{turn}")
            opened = fresh.open([place / f"{number}.jpg" for number in range(count)])
            start = time.perf_counter()
            label(fresh, place, opened, place / f"{turn}.csv", "csv", Wanted())
            fast.append(count / (time.perf_counter() - start))
            start = time.perf_counter()
            for _ in range(max(1, count // len(batch))):
                frozen(batch, torch.device("cpu"))
            bare.append(max(1, count // len(batch)) * len(batch) / (time.perf_counter() - start))
    return statistics.median(bare), statistics.median(fast)


def _photograph_model(files: ImageFiles, extractor: Extractor, place: Path) -> Predictor:
    rng = np.random.default_rng(0)
    classes = ClassTable.build("abcd", rng.random((4, 3)), np.array([True, True, False, False]))
    problem = Problem(files.select(np.array([0, 1])), np.array([0, 1]), files.select(np.array([0])), classes)
    problem, _ = freeze(problem, None, extractor, place / "first", workers=0)
    return Predictor(ESZSL().fit(problem))


def _measure(count: int, width: int) -> dict[str, float]:
    """Label rows of features in this process."""
    rng = np.random.default_rng(0)
    train = rng.random((CLASSES, width), dtype=np.float32)
    problem = Problem.from_arrays(train, np.arange(CLASSES) // 2, rng.random((CLASSES, 85)), train[:2])
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        ESZSL().fit(problem).save(place / "model")
        array = np.lib.format.open_memmap(place / "new.npy", "w+", np.float16, (count, width))
        for start in range(0, count, 1000):
            array[start : start + 1000] = rng.random((min(1000, count - start), width), dtype=np.float32)
        array.flush()
        del array
        predictor = Predictor.load(place / "model")
        watch = Watch("Pss_Anon")
        time.sleep(0.5)
        before, start_time = watch.peak, time.perf_counter()
        opened = predictor.open(place / "new.npy")
        label(predictor, place / "model", opened, place / "out.csv", "csv", Wanted())
        return {"seconds": time.perf_counter() - start_time, "before": before, "peak": watch.stop()}


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]), int(sys.argv[2]))))
