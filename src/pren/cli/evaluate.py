"""``pren evaluate``: compare a run's model with the answers."""

from __future__ import annotations

from typing import Annotated

import typer

from pren.cli.bundles import bundled
from pren.cli.options import Json, RunPath, Threads
from pren.cli.output import percent, print_json, say, show_log, stdout, table
from pren.cli.vision import RunData


@bundled
def evaluate(
    run: RunPath,
    confused: Annotated[int, typer.Option(min=0, help="How many confusions to list.")] = 5,
    *,
    where: RunData,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Score the pool anew with a run's model: figures, every class, the worst confusions."""
    show_log()
    from pren.evaluation import FIGURES, TITLES
    from pren.runs.reopening import evaluate_run
    from pren.runs.store.folder import RunFolder

    metrics = evaluate_run(RunFolder.open(run), **where.said())
    if json:
        print_json(metrics)
        return
    console = stdout()
    figures = FIGURES[metrics["setting"]]
    console.print(table([TITLES[key] for key in figures], [[percent(metrics[key]) for key in figures]], 0), "")
    rows = [
        (row["name"], "seen" if row["seen"] else "unseen", row["images"], row["correct"], percent(row["accuracy"]))
        for row in metrics["per_class"]
    ]
    console.print(table(["class", "", "images", "correct", "per cent"], rows, 2))
    if metrics["reliability"] is not None:
        curve = metrics["reliability"]["curve"]
        points = [(percent(p["coverage"]), percent(p["precision"]), f"{p['confidence']:.2f}") for p in curve]
        console.print("", table(["surest labels (per cent)", "right", "confidence from"], points), sep="\n")
        say(f"Expected calibration error: {percent(metrics['reliability']['ece'])} points")
    wrong = [cell for cell in metrics["confusion"] if cell["true"] != cell["predicted"]][:confused]
    if wrong:
        cells = [(cell["true"], cell["predicted"], cell["count"]) for cell in wrong]
        console.print("", table(["class", "taken for", "images"], cells, 2), sep="\n")
