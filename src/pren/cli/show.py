"""``pren show``: show a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pren.cli.bundles import bundled
from pren.cli.fit import show_result, show_state
from pren.cli.options import Json, RunPath, check_new
from pren.cli.output import Talk, print_json, say, show_log, stdout, table
from pren.foundation.errors import PrenError


@bundled
def show(
    run: RunPath,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the labels to this file: .csv, .jsonl or .parquet.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="The format of --labels: csv, jsonl, parquet, label-studio or fiftyone."),
    ] = None,
    *,
    json: Json = False,
    talk: Talk,
) -> None:
    """Show the settings, the rounds and the results of a run."""
    show_log(talk)
    from pren.label.result import RunResult
    from pren.runs.reopening import load_state

    check_new(labels)
    state = load_state(run)
    if labels is not None:
        if not isinstance(state, RunResult):
            raise PrenError("run-unfinished", f"{run} has no labels yet: go on with 'pren fit --resume {run}'.")
        state.write_labels(labels, form)
    if json:
        print_json({**state.to_dict(), "history": list(state.history)})
        return
    if isinstance(state, RunResult):
        show_result(state, every_class=True)
    else:
        show_state(state)
    stdout().print("", table(["parameter", "value"], state.params.items(), 2), sep="\n")
    if state.history:
        columns = list(state.history[-1])
        rows = [["-" if row[name] is None else row[name] for name in columns] for row in state.history]
        rows = [[f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in rows]
        stdout().print("", table(columns, rows, 0), sep="\n")
    if labels is not None:
        say(f"The labels are in {labels}.")
