"""Cells of an experiment: stored ones are read, others are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pren.foundation.errors import PrenError
from pren.research.cells import Result, Task
from pren.research.folder import CELLS
from pren.research.store import Store
from pren.research.workers import run_tasks

OnCell = Callable[[int, int, Task, Result], None]  # how many are done, of how many, the task, its result


def compute_cells(
    tasks: Iterable[Task],
    folder: Path,
    *,
    jobs: int = 1,
    retry: bool = False,
    stored: bool = False,
    also: Sequence[Path] = (),
    on_cell: OnCell | None = None,
) -> dict[str, Result]:
    """The results of tasks by the keys of their cells; each cell is computed once and kept in the folder.

    Args:
        tasks: What to compute.
        folder: Locked against other writers.
        jobs: How many cells at a time, each in its own process.
        retry: Whether to compute failed cells again.
        stored: Whether to use stored cells only.
        also: Other folders to copy missing cells from.
        on_cell: Called after every computed cell.

    Raises:
        PrenError: If a folder of `also` has no cells.
    """
    for other in also:
        if not (other / CELLS).is_dir():
            raise PrenError("no-results", f"{other} has no folder {CELLS!r}: name a folder of 'pren compare'.")
    store, others = Store(folder), [Store(other) for other in also]
    results: dict[str, Result] = {}
    missing: dict[str, Task] = {}
    for task in tasks:
        result = store.get(task.cell)
        if result is None:
            result = next((found for other in others if (found := other.get(task.cell)) is not None), None)
            if result is not None:
                store.put(task.cell, result)
        if result is None or (retry and result.error is not None):
            missing[task.cell.key()] = task
        else:
            results[task.cell.key()] = result
    total = len(results) + len(missing)

    def keep(task: Task, result: Result) -> None:
        store.put(task.cell, result)
        results[task.cell.key()] = result
        if on_cell is not None:
            on_cell(len(results), total, task, result)

    if not stored:
        run_tasks(missing.values(), folder, jobs, keep)
    return results
