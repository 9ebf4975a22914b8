"""Whether the machine has room for a command, before anything large is imported.

Below these limits OpenBLAS hangs, or ends a process as Ctrl-C does, and libraries fail in a new way at every size
(tried with `ulimit -v` and `ulimit -u`).
"""

from __future__ import annotations

import os
import resource
from threading import Event, Thread

from pren.foundation.errors import PrenError

LEAST_MEMORY = 2_000_000_000  # bytes of addresses: with 1.5 GB no backbone runs
POOLS = 2  # NumPy and SciPy bring an OpenBLAS each
MOST_THREADS = 64  # of an OpenBLAS
SAID_BY = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def check_room() -> None:
    """Raise a `PrenError` if this process may not have the memory or the threads that every command needs."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_MEMORY:
        raise PrenError(
            "memory",
            f"This process may use {limit / 1e9:.1f} GB of memory, and pren needs {LEAST_MEMORY / 1e9:.0f} GB: raise "
            f"the limit ('ulimit -v {LEAST_MEMORY // 1024}' or more).",
        )
    _check_threads(POOLS * (_threads_of_a_pool() - 1))


def _threads_of_a_pool() -> int:
    said = next(filter(None, map(os.environ.get, SAID_BY)), "")
    return min(MOST_THREADS, int(said) if said.isdecimal() and int(said) else os.cpu_count() or 1)


def _check_threads(count: int) -> None:
    done, started = Event(), []
    try:
        for _ in range(count):
            thread = Thread(target=done.wait)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise PrenError(
            "threads",
            f"The system refuses more than {len(started)} threads besides the first, and pren starts {count}: raise "
            "'ulimit -u', or set OPENBLAS_NUM_THREADS=1.",
        ) from error
    finally:
        done.set()
        for thread in started:
            thread.join()
