"""The limits of the machine, measured in the same run."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch


def describe() -> str:
    """Processor, cores and versions in one line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return (
        f"{model}, {os.cpu_count()} cores, {torch.get_num_threads()} thread(s); "
        f"Python {platform.python_version()}, torch {torch.__version__}"
    )


@dataclass(frozen=True)
class Yardsticks:
    """Tasks whose best times are the machine's limits.

    Attributes:
        product: A square product of float32 matrices.
        product_flops: Its operations.
        copy: A copy of memory much larger than a core's caches.
        in_place: An update in place of the same memory, as Adam's are.
        streamed_bytes: What either of the last two reads and writes, together.
    """

    product: Callable[[], object]
    product_flops: int
    copy: Callable[[], object]
    in_place: Callable[[], object]
    streamed_bytes: int


def yardsticks(side: int, numbers: int) -> Yardsticks:
    """For matrices of `side` rows and columns, and this many numbers to copy."""
    a, b, c = torch.randn(side, side), torch.randn(side, side), torch.empty(side, side)
    source, target = torch.randn(numbers), torch.zeros(numbers)
    return Yardsticks(
        product=lambda: torch.mm(a, b, out=c),
        product_flops=2 * side**3,
        copy=lambda: target.copy_(source),
        in_place=lambda: target.mul_(0.999),
        streamed_bytes=2 * target.nbytes,
    )
