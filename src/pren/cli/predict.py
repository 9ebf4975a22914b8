"""``pren predict``: label new photographs or arrays with a model."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pren.cli.bundles import bundled
from pren.cli.launch import Processes, launch
from pren.cli.options import Accelerator, CacheFolder, Json, MinAccuracy, Threads, WeightsFile, check_new, command_line
from pren.cli.output import Talk, print_json, say, show_log, stdout, table
from pren.cli.progress import continued, extraction
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.label.job import Labelled, Wanted
    from pren.label.predictions import Predictions
    from pren.label.predictor import Opened, Predictor
    from pren.label.sorting import Sorter

log = logging.getLogger(__name__)

KEPT = "Finished parts are kept: the same command continues, with any number of processes."


@dataclass(frozen=True)
class TableChoice:
    """Where labels go."""

    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the labels to this file: .csv, .jsonl or .parquet.")
    ] = None
    form: Annotated[
        str | None,
        typer.Option("--format", help="csv, jsonl, parquet, label-studio or fiftyone; by default the ending of --out."),
    ] = None
    sort_into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Sort the photographs into one folder per class in DIR, with labels.csv."),
    ] = None
    sort_as: Annotated[
        Literal["link", "symlink", "copy"],
        typer.Option(help="How to sort: hard links (copies where those fail), symbolic links or copies."),
    ] = "link"

    def table(self) -> Path | None:
        """The file for the labels."""
        return self.sort_into / "labels.csv" if self.out is None and self.sort_into is not None else self.out

    def sorter(self, predictor: Predictor, opened: Opened) -> Sorter | None:
        """The sorter; None without --sort-into."""
        from pren.foundation.files import make_folder
        from pren.label.sorting import Sorter

        if self.sort_into is None:
            return None
        sorter = Sorter(self.sort_into, opened.inputs, predictor.model.classes_.names, self.sort_as)
        make_folder(self.sort_into)
        return sorter


@bundled
def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a folder with a saved model.")],
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUTS...", help="Photographs, folders, .tar files, lists of paths (.txt), or a .npy or .npz file."
        ),
    ],
    *,
    where: TableChoice,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read paths from this column of .csv files.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many classes per input.")] = 5,
    weights: WeightsFile = None,
    cache: CacheFolder = None,
    among: Annotated[
        str | None, typer.Option(help="Candidates: unseen, seen or all; by default those of the fit.")
    ] = None,
    min_accuracy: MinAccuracy = None,
    processes: Processes,
    accelerator: Accelerator = "auto",
    threads: Threads = None,
    json: Json = False,
    talk: Talk,
) -> None:
    """Label photographs or features with a model.

    After an interruption, the same command with --out continues.
    """
    show_log(talk)
    from pren.label.formats import find_writer
    from pren.label.job import Wanted, label
    from pren.label.parts import parts_folder, was_finished

    out, wanted = where.table(), Wanted(top, among, min_accuracy)
    if out is None and (where.form is not None or processes.devices * processes.nodes > 1):
        raise PrenError("option-conflict", "--format, --devices and --nodes need a file: add --out.")
    if out is not None and was_finished(out):
        print_json({"out": str(out)}) if json else say(f"{out} is finished already.")
        return
    check_new(out)
    _check_outside(where.sort_into, inputs)
    form = "" if out is None else find_writer(out, where.form)
    fabric = launch(processes, accelerator, KEPT)
    from pren.label.predictor import Predictor
    from pren.training.processes import agreed, apart, watching

    with watching(fabric):
        with agreed(fabric):
            predictor = Predictor.load(run, weights, cache, apart(fabric))
            predictor.check(top, among, min_accuracy)
            opened = predictor.open(inputs[0] if len(inputs) == 1 else inputs, column)
            sorter = where.sorter(predictor, opened)
        if out is None:
            _print(predictor, opened, wanted, json)
            return
        quiet = talk.quiet or not fabric.is_global_zero  # one of several processes prints
        with continued(parts_folder(out), quiet), extraction(quiet, "labelling") as on_progress:
            done = label(predictor, run, opened, out, form, wanted, sorter, command_line(), on_progress, fabric)
    if fabric.is_global_zero:
        _tell(done, where, out, json)


def _tell(done: Labelled, where: TableChoice, out: Path, json: bool) -> None:
    """Print how many inputs were labelled."""
    if json:
        print_json({**_facts(done.inputs, done.unreadable, done.unsure, done.ranks), "out": str(out)})
        return
    unread = f" {done.unreadable} of them cannot be read." if done.unreadable else ""
    unsure = f" {done.unsure} of them have no label: none is sure enough." if done.unsure else ""
    say(f"{done.inputs} predictions are in {out}.{unread}{unsure}")
    if where.sort_into is not None:
        say(f"The photographs are sorted into {where.sort_into}.")


def _check_outside(folder: Path | None, inputs: list[Path]) -> None:
    """Refuse to sort into a folder of inputs: the next call would label the sorted photographs, too."""
    for source in inputs:
        if folder is not None and source.is_dir() and folder.resolve().is_relative_to(source.resolve()):
            raise PrenError("sort-into-source", f"{folder} is inside of the input {source}: sort into another folder.")


def _print(predictor: Predictor, opened: Opened, wanted: Wanted, json: bool) -> None:
    """Print the labels when all are there: for few inputs."""
    found = predictor.label(opened, wanted.top, wanted.among, wanted.min_accuracy)
    reasons = list(filter(None, found.errors))
    if reasons and len(reasons) == len(found):
        raise PrenError(
            "input-unreadable",
            reasons[0] if len(found) == 1 else f"None of the {len(found)} inputs can be read: {reasons[0]}",
        )
    for reason in reasons:
        log.warning("%s", reason)
    if json:
        rows = [row.to_json() for row in found.rows()]
        unsure = sum(not row["error"] and not row["classes"] for row in rows)
        print_json({**_facts(len(found), len(reasons), unsure, found.top), "predictions": rows})
    else:
        stdout().print(table(["input", "class", "score", "confidence", "familiarity"], _lines(found), 2))


def _facts(inputs: int, unreadable: int, unsure: int, top: int) -> dict[str, Any]:
    return {"inputs": inputs, "unreadable": unreadable, "unsure": unsure, "top": top}


def _lines(found: Predictions) -> list[list[Any]]:
    """A line for every class."""
    lines: list[list[Any]] = []
    for row in found.rows():
        none = "cannot be read" if row.error else "not sure enough"
        best = [[name, f"{score:.4g}"] for name, score in row.classes] or [[none, ""]]
        sure = ["" if share is None else f"{share:.2f}" for share in (row.confidence, row.familiarity)]
        for place, cells in enumerate(best):
            lines.append([row.input, *cells, *sure] if not place else ["", *cells, "", ""])
    return lines
