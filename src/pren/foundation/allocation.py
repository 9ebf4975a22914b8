"""Memory that a program keeps for its next use: for those who start a process, never for a library.

A network asks for the same large blocks again and again. glibc gets blocks above 32 MB from the kernel each time, which
zeroes them page by page, and hands smaller ones back from the end of its heap: a third of the time that a photograph
takes in a small network (`python -m benchmarks allocation`).
"""

from __future__ import annotations

import ctypes
import os

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # as malloc.h numbers what can be set
KEPT = 512 << 20  # bytes at the end of the heap that stay ours
LARGE = 64 << 20  # larger blocks, such as whole arrays of data, still go back at once
SET_BY_HAND = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_memory() -> bool:
    """Let this process keep what it frees, unless its user has said how memory is to be handled.

    Returns:
        Whether it does: other C libraries than glibc cannot be told.
    """
    if any(name in os.environ for name in SET_BY_HAND):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # TypeError: on Windows, where a library has to be named
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGE)) and bool(mallopt(TRIM_THRESHOLD, KEPT))
