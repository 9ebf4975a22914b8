"""Accuracy against processor time: ``python -m benchmarks.minutes [--measure]``.

With ``--measure``, what each step takes of a photograph is measured on some of CUB's (PREN_DATA says where they are),
with one thread, and kept as docs/results/finetuning/costs.json. What a way takes from photographs to labels is reckoned
from that; how good it is, the cells of ``benchmarks.finetuning`` say. Both go into a table and a figure.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.finetuning import PREN, STORE, TITLES, WAYS
from benchmarks.tables import Table
from pren.data import load
from pren.foundation.allocation import keep_memory
from pren.images.extraction import Extractor
from pren.images.finetune.finetuned import TailTrainer
from pren.images.finetune.finetuning import Finetuning
from pren.images.photographs import freeze
from pren.runs.finetuning import DRAWS, STRENGTHS
from pren.training.processes import single_process

COSTS, FIGURE = STORE / "costs.json", STORE / "minutes.png"
SAMPLES = (64, 320)  # photographs that a step is measured on
PHOTOGRAPHS, LABELLED = 11_788, 8_821  # of CUB PS
HELD_OUT = 1 / 3  # of the labelled ones, in a draw
METHODS = {"PrEN-Pool": "PrEN-Pool", PREN: "PrEN, 50 heads"}
BELOW = ("mirrored", "first", "two-mirrored", "three-mirrored")  # labels below their points
LEFT = ("lite1", "two")  # labels left of their points
Costs = dict[str, dict[str, float]]  # milliseconds per photograph by way and step, and kilobytes kept


def measure(way: str) -> dict[str, float]:
    """The cost of each step per additional photograph, without fixed costs."""
    few, many = (_taken(way, count) for count in SAMPLES)
    return {step: (many[step] - few[step]) / (SAMPLES[1] - SAMPLES[0]) for step in many}


def _taken(way: str, count: int) -> dict[str, float]:
    """The cost of each step for this many photographs."""
    asked, fabric = Extractor.model_validate(WAYS[way]), single_process("cpu")
    everything, _ = load("cub", split="PS", images=True)
    some = np.random.default_rng(0).choice(len(everything.train), count, replace=False)
    images = everything.train.select(some)
    problem = replace(everything, train=images, labels=everything.labels[some], pool=images)
    with tempfile.TemporaryDirectory() as cache:
        frozen, extract = _timed(lambda: freeze(problem, None, asked, cache, fabric=fabric, workers=0)[0])
        found = {
            "extract": extract,
            "kilobytes": sum(file.stat().st_size for file in Path(cache).rglob("*.rows")) / 1e3,
        }
        if asked.finetune is not None:
            once = asked.model_copy(update={"finetune": Finetuning.model_validate({"epochs": 1})})
            trainer, everyone = TailTrainer.of(frozen, once, cache, fabric), np.arange(count)
            _, found["learn"] = _timed(lambda: trainer.tail(everyone, 1.0))
            _, found["make"] = _timed(lambda: trainer.learned_from(everyone, 1.0, everyone))
    return found


def _timed(task: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a task, and its milliseconds."""
    began = time.process_time()
    return task(), 1000 * (time.process_time() - began)


def minutes(way: str, costs: dict[str, float]) -> float:
    """Minutes of one core for the features of all photographs."""
    total = PHOTOGRAPHS * costs["extract"]
    if "learn" in costs:
        epochs = Finetuning.model_validate(WAYS[way]["finetune"]).epochs
        total += epochs * LABELLED * (1 + DRAWS * (1 - HELD_OUT)) * costs["learn"]
        total += (PHOTOGRAPHS + DRAWS * len(STRENGTHS) * LABELLED) * costs["make"]
    return total / 60_000


@dataclass(frozen=True)
class Point:
    """A way with a method, on PS."""

    way: str
    method: str
    minutes: float
    top1: float
    seeds: int


def points(costs: Costs) -> Iterator[Point]:
    """Every way with known costs and figures."""
    for way in TITLES:
        measured = costs.get(way)
        cells = [json.loads(file.read_text()) for file in _cells(way)]
        for method in METHODS:
            done = [cell["figures"][method] for cell in cells if method in cell["figures"]]
            if measured is not None and done:
                taken = minutes(way, measured) + float(np.mean([each["seconds"] for each in done])) / 60
                yield Point(way, method, taken, 100 * float(np.mean([each["top1"] for each in done])), len(done))


def _cells(way: str) -> list[Path]:
    """Its cells on PS. Fine-tuning with strength 0 leaves the network frozen; the choice was 0.25 there."""
    names = ["first-0"] if way == "frozen" else [way, f"{way}-0.25"] if "finetune" in WAYS[way] else [way]
    return sorted(file for name in names for file in STORE.glob(f"{name}_PS_*.json"))


def table(found: Sequence[Point], costs: Costs) -> Table:
    """A row for each."""
    header = ["way", "method", "minutes of a core", "Top-1, PS", "seeds", "kept of a photograph, KB"]
    made = Table("From CUB's photographs to labels", header)
    for point in found:
        figures = (
            f"{point.minutes:.0f}",
            f"{point.top1:.1f}",
            f"{point.seeds}",
            f"{costs[point.way]['kilobytes']:.1f}",
        )
        made.rows.append((TITLES[point.way], METHODS[point.method], *figures))
    return made


def stored() -> Table:
    """The stored measurements."""
    costs: Costs = json.loads(COSTS.read_text())
    return table(list(points(costs)), costs)


def draw(found: Sequence[Point], file: Path) -> None:
    """Draw the chart."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for (method, title), mark in zip(METHODS.items(), "os", strict=True):
        mine = [point for point in found if point.method == method]
        axes.scatter([point.minutes for point in mine], [point.top1 for point in mine], marker=mark, label=title)
        for point in mine:
            side, right = ("right", -5) if point.way in LEFT else ("left", 5)
            axes.annotate(
                TITLES[point.way],
                (point.minutes, point.top1),
                xytext=(right, -11 if point.way in BELOW else 4),
                textcoords="offset points",
                horizontalalignment=side,
                fontsize=8,
            )
    axes.set(xscale="log", xlabel="minutes of a core, from photographs to labels", ylabel="Top-1 on CUB PS, per cent")
    axes.set_xticks([3, 5, 10, 20, 30, 60], ["3", "5", "10", "20", "30", "60"])
    axes.minorticks_off()
    axes.set_xlim(right=axes.get_xlim()[1] * 2.6)  # room for the last label
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    figure.savefig(file, dpi=130)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the named ways, and show all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.minutes")
    parser.add_argument(
        "--measure", nargs="*", metavar="WAY", help="measure the costs of these ways; default: all without costs"
    )
    options = parser.parse_args(arguments)
    costs: Costs = json.loads(COSTS.read_text()) if COSTS.exists() else {}
    if options.measure is not None:
        torch.set_num_threads(1)
        keep_memory()
        for way in options.measure or [way for way in TITLES if way not in costs]:
            costs[way] = {step: round(cost, 2) for step, cost in measure(way).items()}
            COSTS.write_text(json.dumps(costs, indent=1) + "\n")
    found = list(points(costs))
    draw(found, FIGURE)
    print(table(found, costs).markdown())


if __name__ == "__main__":
    main()
