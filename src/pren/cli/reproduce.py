"""``pren reproduce``: reproduce the paper's tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli.bundles import bundled
from pren.cli.options import CellChoice, Json, Root, Threads, command_line
from pren.cli.output import Talk, percent, print_json, say, show_log, stdout, table
from pren.cli.progress import continued, counted
from pren.foundation.errors import PrenError, suggest

if TYPE_CHECKING:
    from pren.research.cells import Result, Task
    from pren.research.reproduction.sheets import Sheet


@bundled
def reproduce(
    part: Annotated[
        str, typer.Argument(metavar="PART", help="datasets, zsl, gzsl, sensitivity, complexity, claims or all.")
    ],
    *,
    root: Root = None,
    features_file: Annotated[
        str | None, typer.Option(metavar="FILE.mat", help="A features file in the folders of the benchmarks.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds. Methods without randomness run once.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="Take ten minutes: few heads, few rounds, one seed.")] = False,
    paper_protocol: Annotated[
        bool, typer.Option("--paper-protocol", help="Test GZSL on a random fifth of the seen images, as in the paper.")
    ] = False,
    params: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Parameters by method (YAML), or a folder of 'pren tune'. Repeat."),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option("--cells", metavar="FOLDER", help="Take results from this folder of 'pren compare'. Repeat."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for results, tables and figures.")] = Path("reproduction"),
    cells: CellChoice,
    threads: Threads = None,
    json: Json = False,
    talk: Talk,
) -> None:
    """Reproduce a table or figure of the paper with the data that are there, and list what is missing.

    Every result is kept. The same command continues.
    """
    show_log(talk)
    from pren.methods.registry import METHODS
    from pren.research.pages import report_experiments
    from pren.research.parameters import Parameters, read_parameters
    from pren.research.reproduction.plan import Plan
    from pren.research.reproduction.run import PARTS
    from pren.research.reproduction.run import reproduce as run

    if part not in PARTS:
        raise PrenError("unknown-name", f"The paper has no part {part!r}. {suggest(part, PARTS)}")
    given = reduce(or_, map(read_parameters, params or []), Parameters())
    plan = Plan(root, features_file, 1 if quick else seeds, quick, paper_protocol, given)
    with counted(f"Reproducing {part}{' (QUICK)' if quick else ''}", "cells", talk.quiet) as show, continued(out):

        def on_cell(done: int, total: int, task: Task, result: Result) -> None:
            title = METHODS[task.cell.method].title
            show(done, total, f"{done:3d}/{total}   {task.config.data}   {title}   {_outcome(result)}")

        command = command_line()
        sheets = run(part, plan, out, **vars(cells), also=also or [], command=command, on_cell=on_cell)  # type: ignore[arg-type]
    report_experiments(out)
    if json:
        print_json([sheet.model_dump(mode="json") for sheet in sheets])
        return
    _show(sheets)
    say("")
    say(f"The results are in {out}: NAME.md, .tex and .csv; for figures .png and .svg; report.html")


def _outcome(result: Result) -> str:
    """The figure and the time of a result, or its error."""
    if result.error is not None:
        return f"failed: {result.error}"
    return f"{percent(result.figures.get('top1', result.figures.get('h')))}   {result.fit_seconds:.1f} s"


def _show(sheets: Sequence[Sheet]) -> None:
    """Print tables without columns that cannot be computed, and every note once: a terminal is narrow."""
    from pren.research.reproduction.tables import MISSING

    said: set[str] = set()
    for sheet in sheets:
        shown = sheet.without(MISSING)
        say("")
        say(shown.title, style="bold")
        stdout().print(table(shown.header, shown.rows, numbers_from=shown.texts))
        for note in shown.notes:
            if note not in said:
                say(f"- {note}")
        said.update(shown.notes)
