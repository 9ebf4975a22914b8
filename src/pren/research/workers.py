"""Cells in their own processes, several at a time.

Threads start the processes and wait for them. A `ProcessPoolExecutor` would give up all tasks when one process dies,
and reuse processes, so that the peak memory would not be that of one cell.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from pydantic import ValidationError

from pren.foundation.children import THREAD_VARIABLES, ended_by
from pren.foundation.errors import PrenError
from pren.foundation.files import WRITING, read_bytes, remove, write_json
from pren.research.cells import Result, Task

TASK_FILE = "task.json"
RESULT_FILE = "result.json"
ERROR_FILE = "stderr.txt"
MOST_BYTES = 1 << 20


def run_tasks(tasks: Iterable[Task], folder: Path, jobs: int, on_done: Callable[[Task, Result], None]) -> None:
    """Compute every task, `jobs` at a time; no process is left behind, even after an error.

    The processes write to the folder, under names that mark unfinished work.
    """
    running: set[subprocess.Popen[bytes]] = set()
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(_run, task, folder, threads_each(jobs), running): task for task in tasks}
        try:
            for future in as_completed(futures):
                on_done(futures[future], future.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in futures):
                for process in list(running):
                    process.kill()
                time.sleep(0.02)


def threads_each(jobs: int) -> int:
    """A fair share of the cores, but no more threads than OMP_NUM_THREADS allows a process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get(THREAD_VARIABLES[0], "")
    return max(1, min(cores // jobs, int(allowed) if allowed.isdecimal() else cores))


def shortened(lines: list[str]) -> list[str]:
    """The last lines of a traceback, each cut to 1000 characters."""
    return [line[:1000] for line in lines[-100:]]


def _run(task: Task, folder: Path, threads: int, running: set[subprocess.Popen[bytes]]) -> Result:
    """Compute a task in a process, which is in `running` meanwhile."""
    place = folder / f"{WRITING}{task.cell.key()}"
    environment = {
        **os.environ,
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        "PYTHONSAFEPATH": "1",  # a file named torch.py in the working folder is not torch
    }
    remove(place)
    place.mkdir()
    try:
        write_json(place / TASK_FILE, task.model_dump(mode="json"))
        with (place / ERROR_FILE).open("wb") as errors:
            # A new session keeps Ctrl-C from it. It ends when its standard input closes.
            process = subprocess.Popen(
                [sys.executable, "-m", "pren.research.worker", str(place)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        running.add(process)
        process.wait()
        running.remove(process)
        with process:  # closes its standard input
            return _result(process.returncode, place)
    finally:
        remove(place)


def _result(code: int, place: Path) -> Result:
    """The result of an ended process or, if it failed, why."""
    if code == 0:
        try:
            return Result.model_validate_json(read_bytes(place / RESULT_FILE, MOST_BYTES))
        except (PrenError, ValidationError) as error:
            return Result(error=f"The process left no result: {error}")
    if code < 0:
        return Result(error=f"The process was ended by {ended_by(code)}.")
    said = (place / ERROR_FILE).read_text(errors="replace").strip().splitlines()
    last = said[-1] if said else "without a message"
    return Result(error=f"The process ended with code {code}: {last}", traceback=shortened(said))
