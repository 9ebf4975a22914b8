"""Feature extraction: its rate against the bare backbone, and its memory, which must not grow with the images.

On the photographs of CUB where ``PREN_DATA`` has them, otherwise on as many made ones. Weights are random, which makes
no difference here. Each count runs in a process of its own: ``python -m benchmarks.extraction FOLDER COUNT TURNS
BACKBONE`` prints what it took, as JSON. Memory is read from Linux's /proc.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.tables import Table
from benchmarks.timing import Settings
from pren.images.cache import FeatureCache
from pren.images.extraction import BATCH_ON_CPU, WORKERS, Extractor, FrozenBackbone, extract
from pren.images.files import ImageFiles
from pren.images.folders import list_images
from pren.training.processes import single_process

MB = 1e6
BACKBONE = "tf_efficientnet_lite0"


def run(settings: Settings) -> list[Table]:
    """Two tables."""
    counts: tuple[int, ...] = (1000, 11_788)
    backbone, turns, in_a_turn = BACKBONE, 5, 640
    if settings.quick:
        backbone, counts, turns, in_a_turn = "test_efficientnet", (3,), 1, 4
    rate = Table(
        f"Extraction with {backbone} from files of 224 x 224 pixels, {WORKERS} process(es) decoding",
        ["images at a time", "bare forward pass: images/s", "extraction: images/s", "extraction / bare"],
    )
    memory = Table("Peak memory of an extraction", ["images", "MB"])
    with tempfile.TemporaryDirectory() as name:
        folder = photographs(Path(name), max(*counts, in_a_turn))
        taken = _in_a_process(folder, in_a_turn, turns, backbone)
        rate.rows.append(
            (f"{in_a_turn}", f"{taken['bare']:.1f}", f"{taken['rate']:.1f}", f"{taken['rate'] / taken['bare']:.2f}")
        )
        for count in counts:
            taken = _in_a_process(folder, count, 0, backbone)
            memory.rows.append((f"{count:,}", f"{taken['peak'] / MB:.0f}"))
    rate.notes.append(f"Medians of {turns} turns, the two in turns. Starting to decode is part of every turn.")
    memory.notes.append(
        "Of all processes together, what they share counted once (PSS); looked at ten times a second, one run each."
    )
    return [rate, memory]


def photographs(folder: Path, count: int) -> Path:
    """CUB's photographs, or made ones with noise, whose files have about the same size."""
    real = Path(os.environ.get("PREN_DATA", "")) / "CUB_200_2011" / "images"
    if "PREN_DATA" in os.environ and real.is_dir():
        return real
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (14, 14, 3), dtype=np.uint8)).resize((224, 224))
        noisy = np.asarray(coarse).astype(float) + rng.normal(0, 8, (224, 224, 3))
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / f"{number:05d}.jpg", quality=75)
    return folder


def _in_a_process(folder: Path, count: int, turns: int, backbone: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.extraction", str(folder), str(count), str(turns), backbone]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    taken: dict[str, float] = json.loads(answer.stdout)
    return taken


def _measure(folder: Path, count: int, turns: int, backbone: str) -> dict[str, float]:
    """Extract in this process, in turns with the bare forward pass."""
    files = ImageFiles(folder, list_images(folder)[:count])
    frozen = FrozenBackbone.load(Extractor(backbone=backbone, weights="random"))
    fabric = single_process("cpu")
    photographs = files.prepared(frozen.preprocessing)
    batch, _ = photographs.decoded(range(min(BATCH_ON_CPU, count)))
    rates: list[float] = []
    bare: list[float] = []
    watch = Watch()
    for _ in range(max(turns, 1)):
        with tempfile.TemporaryDirectory() as name:
            start = time.perf_counter()
            extract(files, frozen, FeatureCache(name, frozen.facts, frozen.shape), fabric)
            rates.append(count / (time.perf_counter() - start))
        start = time.perf_counter()
        for _ in range(count // len(batch) if turns else 0):
            frozen(batch, fabric.device)
        bare.append(count // len(batch) * len(batch) / (time.perf_counter() - start))
    return {"rate": statistics.median(rates), "bare": statistics.median(bare), "peak": watch.stop()}


class Watch(threading.Thread):
    """The peak memory of this process and its children together since it was made.

    Of a kind as Linux names them: "Pss", or "Pss_Anon" without pages of files, which the system can take back.
    """

    def __init__(self, kind: str = "Pss") -> None:
        super().__init__(daemon=True)
        self._kind = kind
        self.peak = 0
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        """Measure again and again."""
        while not self._over.wait(0.1):
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
            self.peak = max(self.peak, sum(_proportional_share(process, self._kind) for process in ["self", *children]))

    def stop(self) -> int:
        """The peak, in bytes."""
        self._over.set()
        self.join()
        return self.peak


def _proportional_share(process: str, kind: str) -> int:
    """Bytes of a process with its part of shared pages; 0 if it has ended."""
    with suppress(OSError):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(f"{kind}:"))
    return 0


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])))
