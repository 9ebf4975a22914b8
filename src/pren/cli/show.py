"""``pren show``: what is in a run folder."""

from __future__ import annotations

from pren.cli.options import Json, RunPath
from pren.cli.output import print_json, show_log, stdout, table


def show(run: RunPath, json: Json = False) -> None:
    """Show what a run was asked to do, how it went and how well it did."""
    show_log()
    from pren.cli.summary import show_summary
    from pren.runs.store.folder import RunFolder
    from pren.runs.summary import run_summary

    folder = RunFolder.open(run)
    summary = run_summary(folder)
    history = folder.history()
    if json:
        print_json({**summary, "history": history})
        return
    show_summary(summary, every_class=True)
    stdout().print("", table(["parameter", "value"], summary["params"].items(), 2), sep="\n")
    if history:
        columns = list(history[-1])
        rows = [["-" if row[name] is None else row[name] for name in columns] for row in history]
        rows = [[f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in rows]
        stdout().print("", table(columns, rows, 0), sep="\n")
