"""``pren serve`` against the bare model in the same run: ``python -m benchmarks.serving RUN SECONDS``.

RUN is a run on features or photographs; a request has one input. Clients are threads of this process, so that both
share the same cores.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import uvicorn

from benchmarks.tables import Table
from pren.label.predictor import Predictor
from pren.review.admission import Limits
from pren.review.guard import Access
from pren.review.running import listen
from pren.review.serving import make_service

CLIENTS = (1, 8, 32)


def bare(predictor: Predictor, inputs: np.ndarray, size: int, seconds: float) -> float:
    """Inputs a second of the model alone, `size` at a time."""
    end, count = time.perf_counter() + seconds, 0
    start = time.perf_counter()
    while time.perf_counter() < end:
        predictor.label(inputs[:size], 5)
        count += size
    return count / (time.perf_counter() - start)


def served(port: int, bodies: list[bytes], clients: int, seconds: float) -> tuple[float, float, float]:
    """Requests a second, and the median and the 99th percentile of milliseconds."""
    took: list[float] = []
    end = time.perf_counter() + seconds

    def ask(number: int) -> None:
        connection = HTTPConnection("127.0.0.1", port)
        while time.perf_counter() < end:
            start = time.perf_counter()
            connection.request("POST", "/predict", bodies[number % len(bodies)], {"Content-Type": "application/json"})
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


def run(folder: Path, seconds: float) -> Table:
    """All numbers of clients."""
    predictor = Predictor.load(folder)
    inputs = np.random.default_rng(0).normal(size=(64, *predictor.model.sample_shape_))
    bodies = [json.dumps({"features": each.tolist()}).encode() for each in inputs]
    app = make_service(folder, Access(token=None), Limits())
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on"))
    threading.Thread(target=server.run, args=([listening],), daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    table = Table(
        "One input in a request", ["clients", "requests/s", "p50, ms", "p99, ms", "bare model, inputs/s", "share"]
    )
    for clients in CLIENTS:
        alone = bare(predictor, inputs, clients, seconds)
        rate, middle, slow = served(listening.getsockname()[1], bodies, clients, seconds)
        table.rows.append(
            [str(clients), f"{rate:.0f}", f"{middle:.1f}", f"{slow:.1f}", f"{alone:.0f}", f"{rate / alone:.2f}"]
        )
    server.should_exit = True
    return table


if __name__ == "__main__":
    print(run(Path(sys.argv[1]), float(sys.argv[2])).markdown())
