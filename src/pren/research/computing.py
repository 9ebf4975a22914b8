"""Cells of an experiment: looked up where they are stored, computed where not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pren.foundation.errors import PrenError
from pren.research.cells import Result, Task
from pren.research.folder import CELLS
from pren.research.store import Store
from pren.research.workers import run_tasks

OnCell = Callable[[int, int, Task, Result], None]  # done, of how many, which, and what came out


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
        tasks: What is wanted; a cell that is wanted twice is computed once.
        folder: Held against other writers.
        jobs: How many cells at a time, each in a process of its own.
        retry: Whether to compute cells again that have failed.
        stored: Whether to make do with what is there, and compute nothing.
        also: Other folders whose cells are taken over where this one lacks them.
        on_cell: Called after every cell that was computed.

    Raises:
        PrenError: If one of those others holds no cells.
    """
    for other in also:
        if not (other / CELLS).is_dir():
            raise PrenError(
                "no-results", f"{other} holds no results of 'pren compare': there is no folder {CELLS!r} in it."
            )
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
