"""``pren predict``: its rate against the bare backbone, and its memory, which must not grow with the rows.

On photographs of CUB, as they are, enlarged to 12 megapixels and as mosaics of that size, where ``PREN_DATA`` has them,
otherwise on made ones. Weights are random, which makes no difference here. What counts is processor time, of the
process with the network and of those that decode. It tells the rate where there are cores enough for both (the slower
of the two decides) and where there are not (their sum does), however busy the machine is. Rows are features, each count
in a process of its own: ``python -m benchmarks.labelling COUNT WIDTH`` prints what it took, as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from benchmarks.decoding import SIZE, enlarged, mosaic
from benchmarks.extraction import MB, Watch, photographs
from benchmarks.tables import Table
from benchmarks.timing import Settings
from pren.images.extraction import BATCH_ON_CPU, WORKERS, Extractor, FrozenBackbone
from pren.images.files import ImageFiles
from pren.images.folders import list_images
from pren.images.photographs import freeze
from pren.label.job import Wanted, label
from pren.label.predictor import Predictor
from pren.methods.rivals.eszsl import ESZSL
from pren.problem import ClassTable, Problem

CLASSES = 200


def run(settings: Settings) -> list[Table]:
    """Two tables."""
    counts: tuple[int, ...] = (10_000, 100_000)
    backbone, size, turns, width = "tf_efficientnet_lite0", SIZE, 3, 1280
    numbers = {"as they are": 320, "enlarged": 128, "mosaics": 128}
    if settings.quick:
        backbone, size, counts, turns, width = "test_efficientnet", (800, 600), (50,), 1, 8
        numbers = dict.fromkeys(numbers, 3)
    rate = Table(
        f"Labels of photographs with {backbone} and ESZSL, {WORKERS} process(es) decoding: ms of processor time each",
        ["photographs", "bare", "labels", "decoding", "bare / slower", "bare / sum"],
    )
    extractor = Extractor(backbone=backbone, weights="random")
    with tempfile.TemporaryDirectory() as name:
        folder = photographs(Path(name), max(numbers.values()))
        for what, count in numbers.items():
            seconds = _times(_contents(folder, what, size, count), turns, extractor)
            bare, own, decoding = (1e3 * part / count for part in seconds)
            pixels = "" if what == "as they are" else f", {size[0]} x {size[1]}"
            ratios = (f"{bare / max(own, decoding):.2f}", f"{bare / (own + decoding):.2f}")
            rate.rows.append((f"{what}{pixels}", f"{bare:.1f}", f"{own:.1f}", f"{decoding:.1f}", *ratios))
    rate.notes.append(
        f"Medians of {turns} turns over {', '.join(map(str, numbers.values()))} photographs, labels and the bare "
        "forward pass in turns, from files to a table, nothing in the cache."
    )
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


def _contents(folder: Path, what: str, size: tuple[int, int], count: int) -> Iterator[bytes]:
    """Photographs of a kind."""
    names, rng = list_images(folder), np.random.default_rng(0)
    for name in names[:count]:
        if what == "as they are":
            yield (folder / name).read_bytes()
        else:
            yield enlarged(folder / name, size) if what == "enlarged" else mosaic(folder, names, size, rng)


def _times(contents: Iterator[bytes], turns: int, extractor: Extractor) -> tuple[float, float, float]:
    """Processor seconds of the bare network, and from files to a table: of this process and of the decoders."""
    frozen, device = FrozenBackbone.load(extractor), torch.device("cpu")
    with tempfile.TemporaryDirectory() as name:
        place, names = Path(name), []
        for number, content in enumerate(contents):
            names.append(f"{number}.jpg")
            (place / names[-1]).write_bytes(content)
        files = ImageFiles(place, names)
        predictor = _photograph_model(files, extractor, place)
        batch, _ = files.prepared(frozen.preprocessing).decoded(range(min(BATCH_ON_CPU, len(names))))
        taken = []
        for turn in range(turns):
            fresh = Predictor(predictor.model, cache=place / f"cache-{turn}")
            opened = fresh.open([place / file for file in names])
            before = os.times()
            label(fresh, place, opened, place / f"{turn}.csv", "csv", Wanted())
            between = os.times()
            for _ in range(passes := max(1, len(names) // len(batch))):
                frozen(batch, device)
            own, bare = (b.user + b.system - a.user - a.system for a, b in pairwise((before, between, os.times())))
            decoding = sum(between[2:4]) - sum(before[2:4])
            taken.append((bare * len(names) / (passes * len(batch)), own, decoding))
    bare, own, decoding = (statistics.median(part) for part in zip(*taken, strict=True))
    return bare, own, decoding


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
