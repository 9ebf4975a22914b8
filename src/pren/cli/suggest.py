"""``pren suggest``: which photographs to label next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pren.cli.bundles import bundled
from pren.cli.options import Json, RunData, RunPath, Threads, check_new
from pren.cli.output import Talk, percent, print_json, say, show_log, stdout, table
from pren.foundation.errors import PrenError


@bundled
def suggest(
    run: RunPath,
    count: Annotated[int, typer.Option(min=1, help="How many photographs.")] = 20,
    out: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="A new file to fill in.")] = None,
    *,
    where: RunData,
    threads: Threads = None,
    json: Json = False,
    talk: Talk,
) -> None:
    """List the photographs to label next: first one for each doubtful name of a group, then doubtful ones."""
    show_log(talk)
    from pren.foundation.files import write_csv
    from pren.label.suggest import TO_FILL_IN, suggest_for_run
    from pren.runs.reopening import load_result

    check_new(out)
    found = suggest_for_run(load_result(run, with_data=True, **where.said()), count)
    if out is not None:
        if found.labels is None:
            raise PrenError(
                "no-labels-file",
                "Only a folder of photographs has a labels.csv: omit --out. In a .npz file, put labels into the array "
                "'given'.",
            )
        write_csv(out, TO_FILL_IN, found.rows())
    if json:
        print_json({"inputs": [each._asdict() for each in found.inputs], "out": None if out is None else str(out)})
        return
    if not found.inputs:
        say("Every input of the pool has a label already.")
        return
    rows = [(*each[:3], percent(each.confidence)) for each in found.inputs]
    stdout().print(table(["input", "label now", "runner-up", "sure, per cent"], rows, 3))
    if out is not None:
        there = "" if found.labels == out.absolute() else f", save it as {_from_here(found.labels)}"
        say(f"Fill in the column 'class' of {out} (the rest is to look at){there}, and fit again.")
    elif found.labels is not None:
        say("Add --out FILE.csv for a table to fill in.")


def _from_here(path: Path | None) -> Path | None:
    """A path relative to the working folder if it is in it."""
    return path.relative_to(Path.cwd()) if path is not None and path.is_relative_to(Path.cwd()) else path
