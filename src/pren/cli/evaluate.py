"""``pren evaluate``: compare the labels of a run with the answers."""

from __future__ import annotations

from typing import Annotated

import typer

from pren.cli.bundles import bundled
from pren.cli.options import Json, RunData, RunPath, Threads
from pren.cli.output import Talk, percent, print_json, say, show_log, stdout, table


@bundled
def evaluate(
    run: RunPath,
    confused: Annotated[int, typer.Option(min=0, help="How many confused classes to list.")] = 5,
    *,
    where: RunData,
    threads: Threads = None,
    json: Json = False,
    talk: Talk,
) -> None:
    """Compare the labels of a run with the answers: figures, every class, the most confused classes."""
    show_log(talk)
    from pren.evaluation import FIGURES, TITLES
    from pren.runs.reopening import evaluate_run
    from pren.store.folder import RunFolder

    figures = evaluate_run(RunFolder.open(run), **where.said())
    if json:
        print_json(figures.to_dict())
        return
    console = stdout()
    names = FIGURES[figures.setting]
    console.print(table([TITLES[name] for name in names], [[percent(getattr(figures, name)) for name in names]], 0), "")
    rows = [
        (row.name, "seen" if row.seen else "unseen", row.images, row.correct, percent(row.accuracy))
        for row in figures.per_class
    ]
    console.print(table(["class", "", "inputs", "correct", "per cent"], rows, 2))
    if figures.reliability is not None:
        curve = figures.reliability.curve
        points = [(percent(point.coverage), percent(point.precision), f"{point.confidence:.2f}") for point in curve]
        console.print("", table(["surest labels (per cent)", "right", "confidence from"], points), sep="\n")
        say(f"Expected calibration error: {percent(figures.reliability.ece)} points")
    wrong = [cell for cell in figures.confusion if cell.true != cell.predicted][:confused]
    if wrong:
        cells = [(cell.true, cell.predicted, cell.count) for cell in wrong]
        console.print("", table(["class", "taken for", "inputs"], cells, 2), sep="\n")
