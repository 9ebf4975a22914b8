"""Cells in processes of their own, several at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import ValidationError

from pren.children import ended_by
from pren.errors import PrenError
from pren.experiments.cells import Result, Task
from pren.files import WRITING, read_bytes, remove, write_json

TASK_FILE = "task.json"
RESULT_FILE = "result.json"
ERROR_FILE = "stderr.txt"
MOST_BYTES = 1 << 20
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run_tasks(tasks: Iterable[Task], folder: Path, jobs: int, on_done: Callable[[Task, Result], None]) -> None:
    """Compute every task; on the way out, however that is, no process is left behind.

    Args:
        tasks: What to compute.
        folder: Where the processes leave what they have to say, under names that mark unfinished work.
        jobs: How many processes at a time.
        on_done: Called with every task and what came out, in the order in which they end.
    """
    waiting, running = deque(tasks), list[_Worker]()
    threads = threads_each(jobs)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_Worker(waiting.popleft(), folder, threads))
            time.sleep(0.02)
            for worker in [worker for worker in running if worker.ended()]:
                running.remove(worker)
                result = worker.result()
                worker.close()
                on_done(worker.task, result)
    finally:
        for worker in running:
            worker.close()


def threads_each(jobs: int) -> int:
    """A fair share of the cores, but no more threads than OMP_NUM_THREADS allows a process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get(THREAD_VARIABLES[0], "")
    return max(1, min(cores // jobs, int(allowed) if allowed.isdecimal() else cores))


class _Worker:
    """One process."""

    def __init__(self, task: Task, folder: Path, threads: int) -> None:
        self.task = task
        self._folder = folder / f"{WRITING}{task.cell.key()}"
        remove(self._folder)
        self._folder.mkdir()
        write_json(self._folder / TASK_FILE, task.model_dump(mode="json"))
        environment = {
            **os.environ,
            **dict.fromkeys(THREAD_VARIABLES, str(threads)),
            "PYTHONSAFEPATH": "1",  # a file named torch.py in the working folder is not torch
        }
        with (self._folder / ERROR_FILE).open("wb") as errors:
            # In a session of its own, so that Ctrl-C reaches us alone. It ends when its standard input is closed.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pren.experiments.worker", str(self._folder)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    def ended(self) -> bool:
        return self._process.poll() is not None

    def result(self) -> Result:
        """What an ended process left or, if it was stopped on the way, what is known about that."""
        code = self._process.returncode
        if code == 0:
            try:
                return Result.model_validate_json(read_bytes(self._folder / RESULT_FILE, MOST_BYTES))
            except (PrenError, ValidationError) as error:
                return Result(error=f"The process left no result: {error}")
        if code < 0:
            return Result(error=f"The process was ended by {ended_by(code)}.")
        said = (self._folder / ERROR_FILE).read_text(errors="replace").strip().splitlines()
        return Result(error=f"The process ended with code {code}: {said[-1] if said else 'it said nothing'}")

    def close(self) -> None:
        """End the process if need be, and remove what it left."""
        if not self.ended():
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        remove(self._folder)
