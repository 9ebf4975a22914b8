"""How a command ends when the machine has no more: memory, threads, room for its output, or a reader of it."""

from __future__ import annotations

import errno
import os
import re
import sys

from pren.cli.output import PIPE_CLOSED, complain

NO_ROOM_TO_LOAD = re.compile("failed to map segment|cannot allocate memory|Cannot allocate memory")
NO_THREAD = re.compile("can't start new thread|thread creation|pthread_create|Resource temporarily unavailable")
NO_MEMORY = re.compile("can't allocate memory|out of memory|bad_alloc")


def explained(error: Exception) -> int | None:
    """Print one message for an error that the machine is the reason of; None if it is not."""
    said = str(error)
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    if isinstance(error, OSError) and error.filename is not None:
        complain("file", f"{error.filename}: {error.strerror}.")
    elif NO_THREAD.search(said):
        complain("threads", f"The system refuses more threads or processes ({_last_line(said)}): raise 'ulimit -u'.")
    elif isinstance(error, MemoryError | RuntimeError) and (isinstance(error, MemoryError) or NO_MEMORY.search(said)):
        last = _last_line(said).removeprefix("MemoryError: ")
        complain(
            "memory",
            f"There is not enough memory{last and f' ({last})'}: free some, or use less data or a smaller model (fewer "
            "classes, attributes, heads or layers, or a smaller batch_size).",
        )
    elif NO_ROOM_TO_LOAD.search(said):
        complain("memory", f"There is not enough memory to load what pren needs ({_last_line(said)}): 2 GB are enough.")
    elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
        complain("output", "The disk that standard output goes to is full: free some space.")
    else:
        return None
    return 2


def written(code: int) -> int:
    """Write what is left of standard output; the exit code, another one if that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = PIPE_CLOSED
    except OSError as error:
        complain("output", f"Standard output cannot be written ({error.strerror or error}).")
        code = 2
    else:
        return code
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more as it ends
    return code


def _last_line(said: str) -> str:
    """In the traceback of another process, the last line is the error."""
    return (said.strip().splitlines() or [""])[-1]
