"""The gradient of a layer's weights, laid out and stored in several ways."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.machine import yardsticks
from benchmarks.tables import Table
from benchmarks.timing import Settings, interleave

HEADS, BATCH, HIDDEN = 50, 64, 512


def run(settings: Settings) -> list[Table]:
    """One table for both layers of K heads."""
    heads = 2 if settings.quick else HEADS
    table = Table(
        f"Gradient of the weights, K={heads}, batch {BATCH}, {HIDDEN} units",
        ["way", "1280 inputs: ms", "share of peak", "512 inputs: ms", "share of peak ", "same bits"],
    )
    peak = yardsticks(side=256 if settings.quick else 2048, numbers=1)
    columns = []
    for inputs in (1280, HIDDEN):
        ways, same = _ways(heads, inputs)
        times = interleave({**ways, "peak": peak.product}, settings, rounds=2 if settings.quick else 5)
        fastest = peak.product_flops / times.pop("peak").best
        flops = 2 * heads * BATCH * inputs * HIDDEN
        columns.append({way: (t.best, flops / t.best / fastest, same[way]) for way, t in times.items()})
    for way, (seconds, share, same_bits) in columns[0].items():
        other, other_share, other_same = columns[1][way]
        told = "yes" if same_bits and other_same else "no"
        table.rows.append(
            (way, f"{1000 * seconds:.1f}", f"{share:.0%}", f"{1000 * other:.1f}", f"{other_share:.0%}", told)
        )
    table.notes.append("Best times, in turns. Peak: the best large square product in the same turns.")
    return [table]


def _ways(heads: int, inputs: int) -> tuple[dict[str, Callable[[], object]], dict[str, bool]]:
    """Each way as a task, and whether it gives the bits of the first."""
    x, g = torch.randn(heads, BATCH, inputs), torch.randn(heads, BATCH, HIDDEN)
    kept, turned = torch.zeros(heads, inputs, HIDDEN), torch.zeros(heads, HIDDEN, inputs)
    copied = x.transpose(1, 2).contiguous()
    ways: dict[str, Callable[[], torch.Tensor]] = {
        "xᵀ g, kept memory (as pren has it)": lambda: torch.bmm(x.transpose(1, 2), g, out=kept),
        "xᵀ g, fresh memory": lambda: torch.bmm(x.transpose(1, 2), g),
        "xᵀ g, xᵀ copied before": lambda: torch.bmm(copied, g, out=kept),
        "gᵀ x, kept memory": lambda: torch.bmm(g.transpose(1, 2), x, out=turned).transpose(1, 2),
        "xᵀ g, added to what is there": lambda: torch.baddbmm(kept, x.transpose(1, 2), g, beta=0, out=kept),
        "xᵀ g, head by head": lambda: _head_by_head(x, g, kept),
    }
    first = torch.bmm(x.transpose(1, 2), g)
    return dict(ways), {name: torch.equal(way(), first) for name, way in ways.items()}


def _head_by_head(x: torch.Tensor, g: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    for mine, other, into in zip(x, g, kept, strict=True):
        torch.mm(mine.t(), other, out=into)
    return kept
