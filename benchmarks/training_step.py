"""A training step of the batched ensemble against a loop over `nn.Sequential` heads, and against the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from benchmarks.ensembles import LoopedHeads, Size, batched, random_batches
from benchmarks.machine import yardsticks
from benchmarks.tables import Table
from benchmarks.timing import Settings, Timing, interleave
from pren.core.ensemble import Ensemble

ADAM: dict[str, dict[str, Any]] = {"fused": {"fused": True}, "default": {}}
ADAM_BYTES = 7 * 4  # per weight: weight, gradient and both moments are read, all but the gradient are written


class Trainer:
    """Takes training steps, one per call, and keeps the times of their phases."""

    def __init__(self, model: Ensemble | LoopedHeads, size: Size, adam: dict[str, Any], settings: Settings) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **adam)
        self.batches: Iterator[tuple[Tensor, Tensor]] = random_batches(size)
        self.now = settings.now
        self.phases: dict[str, Timing] = {}

    def __call__(self) -> None:
        """Take a step."""
        features, targets = next(self.batches)
        times = [self.now()]
        self.optimizer.zero_grad()
        loss = self.model.loss(features, targets)
        times.append(self.now())
        loss.backward()  # type: ignore[no-untyped-call]
        times.append(self.now())
        self.optimizer.step()
        times.append(self.now())
        for name, (start, end) in zip(("forward", "backward", "optimiser"), pairwise(times), strict=True):
            self.phases.setdefault(name, Timing()).seconds.append(end - start)


def products_only(size: Size) -> Callable[[], None]:
    """Only the matrix products of a training step, with memory for all outputs."""
    shapes = [(True, fan_in, fan_out) for fan_in, fan_out in size.layers] + [(False, size.h, size.classes)]
    operands = []
    for index, (learnt, fan_in, fan_out) in enumerate(shapes):
        x, W, y = (
            torch.randn(size.heads, *shape)
            for shape in ((size.batch, fan_in), (fan_in, fan_out), (size.batch, fan_out))
        )
        operands.append((x, W, y, torch.zeros_like(W) if learnt else None, torch.zeros_like(x) if index else None))

    def run() -> None:
        for x, W, y, _, _ in operands:
            torch.bmm(x, W, out=y)
        for x, W, y, grad_weight, grad_x in reversed(operands):
            if grad_weight is not None:
                torch.bmm(x.transpose(1, 2), y, out=grad_weight)
            if grad_x is not None:
                torch.bmm(y, W.transpose(1, 2), out=grad_x)

    return run


def run(settings: Settings) -> list[Table]:
    """Three tables: the comparison, the parts of a step, Adam's memory traffic."""
    sizes = [Size(features=d) for d in (512, 1280, 2048)]
    rounds, calls, side, numbers = 7, 3, 2048, 50_000_000
    if settings.quick:
        sizes, rounds, calls, side, numbers = [Size(4, 16, (8, 8), 6, 10, 8)], 2, 1, 64, 10_000
    machine = yardsticks(side, numbers)
    comparison, parts, traffic = tables = _tables(sizes[0], side)
    for size in sizes:
        for adam, options in ADAM.items():
            step = Trainer(batched(size), size, options, settings)
            loop = Trainer(LoopedHeads(size), size, options, settings)
            tasks: dict[str, Callable[[], object]] = {"step": step, "loop": loop, "peak": machine.product}
            if adam == "fused":
                tasks |= {"products": products_only(size), "copy": machine.copy, "in place": machine.in_place}
            times = interleave(tasks, settings, rounds, calls)
            peak = machine.product_flops / times["peak"].best
            ideal = size.training_flops / peak
            comparison.rows.append(_comparison(size, adam, times, ideal))
            if adam == "fused":
                parts.rows.append(_parts(size, step.phases, times["products"], ideal))
                traffic.rows.append(_traffic(size, step.phases["optimiser"], times, machine.streamed_bytes, ideal))
    comparison.notes.append(f"Peak beside the last row: {peak / 1e9:.0f} GFLOP/s.")
    return tables


def _tables(size: Size, side: int) -> list[Table]:
    """Without their rows."""
    return [
        Table(
            f"Training step, K={size.heads}, batch {size.batch}: batched against a loop over heads",
            ["d", "Adam", "batched ms", "loop ms", "loop / batched", "batched: share of peak", "loop: share of peak"],
            notes=[
                "Medians of interleaved steps (zero_grad, forward, loss, backward, Adam), the same Adam on both sides. "
                "Share of peak: the operations that the step's products need, per second of the best step, against the "
                f"best {side} x {side} float32 product."
            ],
        ),
        Table(
            "Where a batched step with fused Adam spends its time",
            ["d", "products ms", "rest of forward and backward ms", "Adam ms", "products alone: share of peak"],
            notes=[
                "Best times. The products are timed by themselves, with the shapes of the step; the rest is what "
                "forward and backward take beyond them: biases, ReLU, softmax, autograd."
            ],
        ),
        Table(
            "Fused Adam against the memory",
            ["d", "weights M", "Adam GB/s", "copy GB/s", "update in place GB/s", "most a step could reach"],
            notes=[
                "Best times. Adam reads four numbers per weight and writes three. A copy also fetches what it "
                "overwrites; an update in place does not. Last column: the share of peak of a step with its products "
                "at full peak, this Adam and nothing else."
            ],
        ),
    ]


def _comparison(size: Size, adam: str, times: dict[str, Timing], ideal: float) -> list[str]:
    step, loop = times["step"], times["loop"]
    return [
        f"{size.features}",
        adam,
        f"{step.median * 1e3:.1f}",
        f"{loop.median * 1e3:.1f}",
        f"{loop.median / step.median:.2f}",
        f"{ideal / step.best:.0%}",
        f"{ideal / loop.best:.0%}",
    ]


def _parts(size: Size, phases: dict[str, Timing], products: Timing, ideal: float) -> list[str]:
    rest = phases["forward"].best + phases["backward"].best - products.best
    return [
        f"{size.features}",
        f"{products.best * 1e3:.1f}",
        f"{rest * 1e3:.1f}",
        f"{phases['optimiser'].best * 1e3:.1f}",
        f"{ideal / products.best:.0%}",
    ]


def _traffic(size: Size, update: Timing, times: dict[str, Timing], streamed: int, ideal: float) -> list[str]:
    return [
        f"{size.features}",
        f"{size.parameters / 1e6:.1f}",
        f"{size.parameters * ADAM_BYTES / update.best / 1e9:.1f}",
        f"{streamed / times['copy'].best / 1e9:.1f}",
        f"{streamed / times['in place'].best / 1e9:.1f}",
        f"{ideal / (ideal + update.best):.0%}",
    ]
