"""How much memory this process has needed."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> int:
    """The most bytes that this process held.

    Linux hands a parent's `ru_maxrss` down to its child; VmHWM begins anew.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if "VmHWM" in line)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
