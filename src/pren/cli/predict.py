"""``pren predict``: label new images with a run's model."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pren.cli.options import Json, check_new, command_line
from pren.cli.output import print_json, say, show_log, stdout, table
from pren.cli.progress import continued, extraction
from pren.cli.trust import Precision
from pren.cli.vision import CacheFolder, WeightsFile
from pren.errors import PrenError

if TYPE_CHECKING:
    from pren.labelling import Record, Wanted
    from pren.predictor import Opened, Predictor

log = logging.getLogger(__name__)


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a folder with a saved model.")],
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUTS...",
            help="Photographs, folders or .tar files of them, lists of their paths (.txt), or a .npy or .npz file.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the labels: .csv, .jsonl or .parquet; printed by default."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="csv, jsonl, parquet, label-studio or fiftyone; by default as --out ends."),
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="With it, .csv files are lists: the column with the paths.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many classes per image.")] = 5,
    weights: WeightsFile = None,
    cache: CacheFolder = None,
    among: Annotated[str | None, typer.Option(help="unseen, seen or all; by default as the model was fitted.")] = None,
    precision: Precision = None,
    json: Json = False,
) -> None:
    """Label photographs or feature vectors, best class first.

    With --out, what is finished outlives an interruption: the same command goes on from there.
    """
    show_log()
    from pren.labelling import Wanted, find_writer, was_finished
    from pren.predictor import Predictor

    if out is not None and was_finished(out):
        say(f"{out} was finished before.")
        return
    check_new(out)
    if out is None and form is not None:
        raise PrenError("--format is for a file: say which with --out.")
    form = None if out is None else find_writer(out, form)
    predictor = Predictor.load(run, weights, cache)
    wanted = Wanted(top, among, precision)
    predictor.check(top, among, precision)
    opened = predictor.open(inputs[0] if len(inputs) == 1 else inputs, column)
    if out is None or form is None:
        _print(predictor, opened, wanted, json)
        return
    from pren.labelling import label, parts_folder

    with continued(parts_folder(out)), extraction(doing="labelling") as on_progress:
        done = label(predictor, run, opened, out, form, wanted, command_line(), on_progress)
    if json:
        print_json({**_facts(done.inputs, done.unreadable, done.unsure, done.ranks), "out": str(out)})
        return
    unread = f" {done.unreadable} of them could not be read." if done.unreadable else ""
    unsure = f" {done.unsure} of them have no label: none is sure enough." if precision is not None else ""
    say(f"{done.inputs} predictions are in {out}.{unread}{unsure}")


def _print(predictor: Predictor, opened: Opened, wanted: Wanted, json: bool) -> None:
    """Show the labels; the first ones are there when all are, so this is for few."""
    from pren.labelling import records

    found = predictor.predict(opened, wanted.top, wanted.among, wanted.precision)
    reasons = list(filter(None, found.errors))
    if reasons and len(reasons) == len(found):
        raise PrenError(reasons[0] if len(found) == 1 else f"None of the {len(found)} images can be read: {reasons[0]}")
    for reason in reasons:
        log.warning("%s", reason)
    rows = records(found)
    if json:
        unsure = sum(not row["error"] and not row["classes"] for row in rows)
        print_json({**_facts(len(found), len(reasons), unsure, found.classes.shape[1]), "predictions": rows})
    else:
        stdout().print(table(["input", "class", "score", "confidence", "familiarity"], _lines(rows), 2))


def _facts(inputs: int, unreadable: int, unsure: int, top: int) -> dict[str, Any]:
    return {"inputs": inputs, "unreadable": unreadable, "unsure": unsure, "top": top}


def _lines(rows: list[Record]) -> list[list[Any]]:
    """For people: a line for every class."""
    lines: list[list[Any]] = []
    for row in rows:
        none = "cannot be read" if row["error"] else "not sure enough"
        best = [[label["class"], f"{label['score']:.4g}"] for label in row["classes"]] or [[none, ""]]
        sure = ["" if row[key] is None else f"{row[key]:.2f}" for key in ("confidence", "familiarity")]
        for place, cells in enumerate(best):
            lines.append([row["input"], *cells, *sure] if not place else ["", *cells, "", ""])
    return lines
