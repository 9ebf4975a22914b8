"""Compute a reproduction, and write its tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from pren.foundation.extras import need
from pren.research.computing import OnCell, compute_cells
from pren.research.folder import held_folder
from pren.research.reproduction.claims import Evidence, claims
from pren.research.reproduction.complexity import complexity
from pren.research.reproduction.plan import Plan, WantedCells
from pren.research.reproduction.sensitivity import draw, sensitivity, sensitivity_cells
from pren.research.reproduction.sheets import Sheet, keep_sheets
from pren.research.reproduction.tables import datasets, gzsl, gzsl_cells, zsl, zsl_cells

Part = Literal["datasets", "zsl", "gzsl", "sensitivity", "complexity", "claims", "all"]
PARTS: tuple[str, ...] = get_args(Part)
PARTS_CELLS: dict[str, Callable[[Plan], WantedCells]] = {
    "zsl": zsl_cells,
    "gzsl": gzsl_cells,
    "sensitivity": sensitivity_cells,
}


def reproduce(
    part: Part,
    plan: Plan,
    out: str | Path,
    *,
    jobs: int = 1,
    retry: bool = False,
    stored: bool = False,
    also: Sequence[Path] = (),
    command: str = "",
    on_cell: OnCell | None = None,
) -> list[Sheet]:
    """Reproduce a part of the paper.

    Args:
        part: "claims" needs the cells of all tables, and "all" writes everything.
        plan: How.
        out: A folder, new or of an earlier reproduction. Parts share its cells.
        jobs: How many cells at a time.
        retry: Whether to compute failed cells again.
        stored: Whether to use stored cells only.
        also: Folders of comparisons to copy cells from.
        command: The command line, for the message that other writers get.
        on_cell: Called after every computed cell.

    Returns:
        The tables, which are also written to `out`.
    """
    need("matplotlib", "research")  # fail now, not after hours
    folder, everything = Path(out), part in ("claims", "all")
    with held_folder(folder, command):
        wanted = {
            name: asked(plan) if everything or part == name else WantedCells() for name, asked in PARTS_CELLS.items()
        }
        tasks = [task for asked in wanted.values() for task in asked.tasks()]
        results = compute_cells(tasks, folder, jobs=jobs, retry=retry, stored=stored, also=also, on_cell=on_cell)
        sheets: list[Sheet] = []
        if part in ("datasets", "all"):
            sheets.append(datasets(plan))
        if part in ("zsl", "all"):
            sheets += zsl(plan, wanted["zsl"], results)
        if part in ("gzsl", "all"):
            sheets.append(gzsl(plan, wanted["gzsl"], results))
        if part in ("sensitivity", "all"):
            panels = sensitivity(plan, wanted["sensitivity"], results)
            draw(panels, folder, plan.quick)
            sheets += panels
        if part in ("complexity", "all"):
            sheets.append(complexity())
        if everything:
            evidence = Evidence(**wanted, results=results, counts_images=plan.paper_protocol)
            sheets.append(claims(plan, evidence))
        if plan.quick:
            sheets = [sheet.model_copy(update={"title": f"QUICK. {sheet.title}"}) for sheet in sheets]
        keep_sheets(folder, sheets)
    return sheets
