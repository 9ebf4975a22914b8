"""``pren serve`` against the bare model in the same run: ``python -m benchmarks.serving RUN SECONDS``.

RUN is a run on features, or on features of photographs: then requests are photographs of 256 x 256 pixels. A request
has one input. The service is a process of its own; both are limited to one thread by OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.tables import Table
from pren.label.predictor import Predictor

CLIENTS = (1, 8, 32)


def bare(predictor: Predictor, inputs: Any, size: int, seconds: float) -> float:
    """Inputs a second of the model alone, `size` at a time."""
    end, count = time.perf_counter() + seconds, 0
    start = time.perf_counter()
    while time.perf_counter() < end:
        predictor.label(inputs[:size], 5)
        count += size
    return count / (time.perf_counter() - start)


def served(port: int, bodies: Sequence[bytes], kind: str, clients: int, seconds: float) -> tuple[float, float, float]:
    """Requests a second, and the median and the 99th percentile of milliseconds."""
    took: list[float] = []
    end = time.perf_counter() + seconds

    def ask(number: int) -> None:
        connection = HTTPConnection("127.0.0.1", port)
        while time.perf_counter() < end:
            start = time.perf_counter()
            connection.request("POST", "/predict", bodies[number % len(bodies)], {"Content-Type": kind})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            took.append(1000 * (time.perf_counter() - start))
        connection.close()

    start = time.perf_counter()
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = len(took) / (time.perf_counter() - start)
    return rate, float(np.percentile(took, 50)), float(np.percentile(took, 99))


def sent(predictor: Predictor) -> tuple[Any, list[bytes], str]:
    """Inputs, the same as bodies of requests, and their type."""
    rng = np.random.default_rng(0)
    if predictor.model.extractor_ is None:
        inputs = rng.normal(size=(64, *predictor.model.sample_shape_))
        return inputs, [json.dumps({"features": each.tolist()}).encode() for each in inputs], "application/json"
    bodies = []
    for _ in range(64):
        out = io.BytesIO()
        small = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
        small.resize((256, 256), Image.Resampling.BICUBIC).save(out, "JPEG")
        bodies.append(out.getvalue())
    return bodies, bodies, "image/jpeg"


def run(folder: Path, seconds: float) -> Table:
    """All numbers of clients."""
    predictor = Predictor.load(folder)
    inputs, bodies, kind = sent(predictor)
    command = [sys.executable, "-m", "pren.cli", "serve", str(folder), "--no-token", "--port", "0"]
    table = Table(
        f"One input in a request ({kind})",
        ["clients", "requests/s", "p50, ms", "p99, ms", "bare model, inputs/s", "share"],
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+);", process.stdout.readline())
        assert found is not None
        served(int(found[1]), bodies, kind, 1, 1.0)  # the first request loads what is needed
        bare(predictor, inputs, 1, 0.5)
        for clients in CLIENTS:
            alone = bare(predictor, inputs, clients, seconds)
            rate, middle, slow = served(int(found[1]), bodies, kind, clients, seconds)
            table.rows.append(
                [str(clients), f"{rate:.0f}", f"{middle:.1f}", f"{slow:.1f}", f"{alone:.0f}", f"{rate / alone:.2f}"]
            )
        process.send_signal(signal.SIGTERM)
    return table


if __name__ == "__main__":
    print(run(Path(sys.argv[1]), float(sys.argv[2])).markdown())
