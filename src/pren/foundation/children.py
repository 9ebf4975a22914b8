"""Child processes: they end with their parent, and the parent can say what ended them."""

from __future__ import annotations

import os
import signal
import threading

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # child processes read these


def end_with_parent(pipe: int) -> None:
    """End this process when its parent ends, for any reason: the system then closes the pipe.

    Args:
        pipe: The file descriptor of the reading end. The parent never writes to the pipe.
    """
    threading.Thread(target=_wait, args=(pipe,), daemon=True).start()


def ended_by(code: int) -> str:
    """The signal behind a negative exit code, and its likely cause."""
    hint = " (perhaps the system ran out of memory)" if code == -signal.SIGKILL else ""
    return signal.Signals(-code).name + hint


def _wait(pipe: int) -> None:
    os.read(pipe, 1)  # returns when the parent is gone
    os._exit(1)
