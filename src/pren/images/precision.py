"""bfloat16 on a CPU: some virtual CPUs claim to have instructions (AMX) that kill a process."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pren.foundation.errors import PrenError
from pren.images.trials import survives

Precision = Literal["float32", "bfloat16"]

LOWER = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"  # oneDNN reads it once, at its first computation in a process
TRIAL = """
import sys
sys.path[:] = sys.argv[1:]
import torch
from torch import nn
images = torch.rand(4, 32, 16, 16).to(memory_format=torch.channels_last)
with torch.autocast("cpu", torch.bfloat16):
    nn.Linear(64, 64)(torch.rand(64, 64)).sum().backward()
    nn.Conv2d(32, 32, 3)(images).sum().backward()
"""


def check_bfloat16() -> None:
    """Try bfloat16 on this CPU, once per process; `PrenError` if it does not work."""
    if not _works():
        other = f", or set {LOWER} before you start pren" if _works(LOWER) else ""
        raise PrenError("precision-cpu", f"bfloat16 does not work on this CPU: use precision=float32{other}.")


@cache
def _works(variable: str = "") -> bool:
    """Whether a child process survives products in bfloat16, with this environment variable."""
    name, _, value = variable.partition("=")
    return survives(TRIAL, variables={name: value} if variable else {})
