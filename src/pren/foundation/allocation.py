"""Let a process keep the memory it frees. Only programs call this, never the library.

A network asks for the same large blocks again and again. glibc gets blocks above 32 MB from the kernel each time, which
zeroes them page by page, and gives smaller ones back from the end of its heap. In a small network this takes a third of
the time per photograph (`python -m benchmarks allocation`).
"""

from __future__ import annotations

import ctypes
import os

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # parameter numbers of malloc.h
KEPT = 512 << 20  # bytes that stay at the end of the heap
LARGE = 64 << 20  # larger blocks, such as arrays of data, still go back at once
EVERYTHING = (1 << 31) - 1  # the most that can be said
SET_BY_HAND = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES")
HEAPS = 2  # each keeps up to `KEPT`


def keep_memory() -> bool:
    """Let this process keep the memory it frees; returns False without glibc or if the user has set malloc options."""
    return _told(MMAP_THRESHOLD, LARGE) and _told(TRIM_THRESHOLD, KEPT)


def keep_all_memory() -> bool:
    """Let this process keep blocks of any size, too, until it ends: a backbone is trained.

    The activations of a batch are gigabytes in blocks of hundreds of megabytes, anew in every step.
    """
    return _told(MMAP_THRESHOLD, EVERYTHING) and _told(TRIM_THRESHOLD, EVERYTHING)


def share_memory() -> bool:
    """Let all threads share two heaps: a service has dozens, and each would keep the memory it frees for itself."""
    return _told(ARENA_MAX, HEAPS)


def _told(parameter: int, value: int) -> bool:
    if any(name in os.environ for name in SET_BY_HAND):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # Windows raises TypeError
        return False
    return bool(mallopt(parameter, value))
