"""``pren compare``: compare methods on the same data."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli import options
from pren.cli.bundles import bundled
from pren.cli.options import BackboneChoice, CellChoice, DataChoice, Json, command_line, settings_of
from pren.cli.output import Talk, percent, print_json, say, show_log, stdout, table
from pren.cli.progress import continued, counted, extraction
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.problem import Setting
    from pren.research.cells import Result, Task
    from pren.research.summary import Row
    from pren.runs.settings import Settings


@bundled
def compare(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", help="Folders, .npz files or names of 'pren list datasets'.")
    ],
    *,
    methods: Annotated[
        str, typer.Option(help="Names or patterns separated by commas, such as 'pren*,eszsl'; or all.")
    ] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds. Methods without randomness run once.")] = 5,
    out: Annotated[Path, typer.Option(help="The folder for results, tables and chart.")] = Path("comparison"),
    chosen: DataChoice,
    vision: BackboneChoice,
    params: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Parameters by method (YAML), or a folder of 'pren tune'.")
    ] = None,
    cells: CellChoice,
    threads: options.Threads = None,
    json: Json = False,
    talk: Talk,
) -> None:
    """Compare methods over several seeds, in a table and a chart.

    Every result is kept. The same command continues, also with more methods, data or seeds.
    """
    show_log(talk)
    from pren.evaluation import MAIN_FIGURE
    from pren.methods.registry import METHODS
    from pren.research.comparison import ComparisonPlan
    from pren.research.comparison import compare as run
    from pren.research.parameters import Parameters, read_parameters

    names = _methods(methods)
    given = [_settings(name, chosen, vision) for name in dict.fromkeys(data)]
    wanted = [settings.with_backbone(settings.config(), names) for settings in given]
    plan = ComparisonPlan(wanted, names, seeds, Parameters() if params is None else read_parameters(params))
    setting = wanted[0].setting
    title, command = f"Comparing {len(names)} methods ({setting})", command_line()
    with counted(title, "cells", talk.quiet) as show, extraction(talk.quiet) as on_extract, continued(out):

        def on_cell(done: int, total: int, task: Task, result: Result) -> None:
            seed = "" if task.cell.seed is None else f" seed {task.cell.seed}"
            figure = percent(result.figures.get(MAIN_FIGURE[setting]))
            said = f"failed: {result.error}" if result.error is not None else f"{figure}   {result.fit_seconds:.1f} s"
            what = f"{Path(task.config.data).name}   {METHODS[task.cell.method].title}{seed}"
            show(done, total, f"{done:3d}/{total}   {what}   {said}")

        rows = run(plan, out, **vars(cells), command=command, on_cell=on_cell, on_extract=on_extract)
    if json:
        print_json({"out": str(out), "setting": setting, "rows": [asdict(row) for row in rows]})
        return
    _show(rows, setting)
    say(f"Tables and chart: {out}/table.md, .tex, .csv and chart.png, .svg")


def _show(rows: list[Row], setting: Setting) -> None:
    from pren.research.tables import table_of

    for name, group in groupby(rows, key=lambda row: row.data):
        shown = list(group)
        header, cells, _ = table_of(shown, setting)
        columns = len(header) - (header[-1] == "note")  # the notes come below: a terminal is narrow
        say(f"{name} ({setting}, per cent)", style="bold")
        stdout().print(table(header[:columns], [row[:columns] for row in cells]))
        for row in shown:
            if row.note():
                say(f"{row.method}: {row.note()}")


def _settings(name: str, chosen: DataChoice, vision: BackboneChoice) -> Settings:
    """The settings of one data set, without options that it does not have."""
    from pren.data import find_dataset

    known = find_dataset(name)
    settings = settings_of(chosen, vision, data=name)
    return replace(
        settings,
        root=settings.root if known.needs_root else None,
        features_file=settings.features_file if "features" in known.file_options else None,
    )


def _methods(patterns: str) -> list[str]:
    """The names that match, each once; a `PrenError` if a pattern matches none."""
    from pren.methods.registry import METHODS, list_methods

    names: list[str] = []
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        if pattern == "all":  # methods for a special kind of data must be named
            names += [entry.name for entry in list_methods() if not entry.method.one_space]
        else:
            names += [entry.name for entry in list_methods(pattern)] or [METHODS[pattern].name]
    if not names:
        raise PrenError("option-value", "--methods takes names, such as 'pren,eszsl', or all.")
    return list(dict.fromkeys(names))
