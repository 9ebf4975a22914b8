"""Processes that we start: they end when we do, and we can say what ended them."""

from __future__ import annotations

import os
import signal
import threading

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # which child processes read


def end_with_parent(pipe: int) -> None:
    """End this process when the one that started it does, however that happens: the system then closes the pipe.

    Nobody ever writes to the pipe; what is given is the file descriptor of its reading end.
    """
    threading.Thread(target=_wait, args=(pipe,), daemon=True).start()


def ended_by(code: int) -> str:
    """The signal that a negative exit code stands for, and what it may mean."""
    hint = " (maybe by the system, for want of memory)" if code == -signal.SIGKILL else ""
    return signal.Signals(-code).name + hint


def _wait(pipe: int) -> None:
    os.read(pipe, 1)  # returns when the parent is gone
    os._exit(1)
