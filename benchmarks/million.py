"""``pren fit`` and ``pren predict`` on ten thousand to a million rows of features, and what more would cost.

The features are CUB's (EfficientNet-Lite0's, 1,280 numbers, half precision) where ``PREN_DATA`` has them, otherwise
made ones; each row of the pool is one of an unseen class, jittered. They lie in a ``.npz`` file that is not compressed,
so they stay on disk. Both commands are run as a person runs them, one thread, each in a process of its own, which is
watched from outside: ``python -m benchmarks.million [ROWS ...]``.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Table
from benchmarks.timing import OtherLoad, Settings
from pren.data import load
from pren.foundation.errors import PrenError
from pren.problem import Answers, Problem

MB = 1e6
ROWS = (10_000, 100_000, 1_000_000)
JITTER = 0.1  # standard deviation of the logarithm of the factor of each number
BLOCK = 10_000  # rows that are made at once
COLUMNS = ["rows", "pool on disk: MB", "CPU s", "wall s", "memory: MB", "with mapped pages: MB"]


class Taken(NamedTuple):
    """The cost of a command: processor and wall seconds, bytes without and with pages of files."""

    cpu: float
    wall: float
    own: int
    resident: int


def run(settings: Settings, counts: Sequence[int] = ROWS) -> list[Table]:
    """Two tables."""
    counts = (200,) if settings.quick else counts
    fit = Table("pren fit: PrEN-Pool with its forecast, its table and its report", [*COLUMNS, "right: %"])
    predict = Table("pren predict: the same rows to a table", COLUMNS)
    problem, answers = _made() if settings.quick else _real()
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            classes = make_files(place, problem, answers, count)
            fitted = _watched(place, "fit", "data.npz", "--out", "run", "--threads", "1")
            labelled = _watched(place, "predict", "run", "pool.npy", "--out", "labels.csv", "--threads", "1")
            size = f"{(place / 'pool.npy').stat().st_size / MB:,.0f}"
            right = np.fromiter(_labels(place / "run" / "predictions.csv"), dtype="U100") == classes
            fit.rows.append((f"{count:,}", size, *_cells(fitted), f"{100 * right.mean():.1f}"))
            predict.rows.append((f"{count:,}", size, *_cells(labelled)))
    notes = (
        "One run each, in a process of its own. Memory is what the system cannot take back (RssAnon); pages of mapped"
    )
    fit.notes.append(f"{notes} files are beside it (VmHWM), and the system takes them back when others need the room.")
    return [fit, predict]


def make_files(place: Path, problem: Problem, answers: Answers, count: int) -> NDArray[np.str_]:
    """Write ``pool.npy`` and ``data.npz`` with a pool of this many rows; returns their classes."""
    rng, names = np.random.default_rng(0), np.array(problem.classes.names)
    known = problem.pool[np.arange(len(problem.pool))].numpy()
    pool = np.lib.format.open_memmap(place / "pool.npy", "w+", np.float16, (count, known.shape[1]))
    chosen = rng.integers(len(known), size=count)
    for start in range(0, count, BLOCK):
        some = known[chosen[start : start + BLOCK]]
        pool[start : start + BLOCK] = some * np.exp(JITTER * rng.standard_normal(some.shape, dtype=np.float32))
    pool.flush()
    np.savez(
        place / "data.npz",
        features=problem.train[np.arange(len(problem.train))].numpy().astype(np.float16),
        labels=problem.labels,
        signatures=problem.classes.signatures,
        class_names=names,
        pool=np.load(place / "pool.npy", mmap_mode="r"),
    )
    classes: NDArray[np.str_] = names[answers.labels[chosen]]
    return classes


def _real() -> tuple[Problem, Answers]:
    try:
        problem, answers = load("cub", split="PS", features="efflite0.mat")
    except PrenError:
        return _made(seen=100, unseen=50, width=1280)
    assert answers is not None
    return problem, answers


def _made(seen: int = 6, unseen: int = 3, width: int = 8, each: int = 30) -> tuple[Problem, Answers]:
    rng = np.random.default_rng(0)
    signatures = rng.random((seen + unseen, 20))
    centres = signatures @ rng.random((20, width))
    labels = np.repeat(np.arange(seen + unseen), each)
    x = centres[labels] * np.exp(0.2 * rng.standard_normal((len(labels), width)))
    train = labels < seen
    problem = Problem.from_arrays(x[train], labels[train], signatures, x[~train])
    return problem, Answers(labels[~train])


def _watched(place: Path, *command: str) -> Taken:
    """Run ``pren`` in a folder, and measure its memory from outside."""
    start, before, own, resident = time.perf_counter(), os.times(), 0, 0
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "pren.cli", *command], cwd=place, env=surroundings, stdout=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            with suppress(OSError, LookupError):  # it may just have ended
                text = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
                known = dict(line.split(":", 1) for line in text.splitlines())
                own, resident = max(own, _bytes(known["RssAnon"])), max(resident, _bytes(known["VmHWM"]))
            time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"pren {' '.join(command)} has failed with exit code {process.returncode}.")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Taken(cpu, time.perf_counter() - start, own, resident)


def _bytes(entry: str) -> int:
    return int(entry.split()[0]) * 1024


def _labels(path: Path) -> Iterator[str]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from (row["class"] for row in csv.DictReader(file))


def _cells(taken: Taken) -> tuple[str, ...]:
    return (
        f"{taken.cpu:.0f}",
        f"{taken.wall:.0f}",
        f"{taken.own / MB:,.0f}",
        f"{taken.resident / MB:,.0f}",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description="fit and predict, rows by rows.")
    parser.add_argument("rows", nargs="*", type=int, default=list(ROWS), metavar="ROWS", help="sizes of the pool")
    load_of_others = OtherLoad()
    for table in run(Settings(), parser.parse_args().rows):
        print(table.markdown(), end="\n\n")
    print(f"Other processes took {load_of_others.share():.0%} of all cores meanwhile.")
