"""``pren predict``: label new images with a run's model."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pren.cli.options import Json, check_new
from pren.cli.output import print_json, say, show_log, stdout, table
from pren.cli.trust import Precision
from pren.cli.vision import CacheFolder, WeightsFile
from pren.errors import PrenError

if TYPE_CHECKING:
    from pren.predictor import Predictions

log = logging.getLogger(__name__)

SURE = ("confidence", "familiarity")


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a folder with a saved model.")],
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUTS...", help="Photographs, folders of them, or a .npy or .npz file.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Where to write the predictions; printed by default.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many classes per image.")] = 5,
    weights: WeightsFile = None,
    cache: CacheFolder = None,
    among: Annotated[str | None, typer.Option(help="unseen, seen or all; by default as the model was fitted.")] = None,
    precision: Precision = None,
    json: Json = False,
) -> None:
    """Label photographs or feature vectors, best class first."""
    show_log()
    from pren.files import write_csv
    from pren.predictor import Predictor

    check_new(out)
    predictor = Predictor.load(run, weights, cache)
    found = predictor.predict(inputs[0] if len(inputs) == 1 else inputs, top, among, precision)
    reasons = list(filter(None, found.errors))
    if reasons and len(reasons) == len(found):
        raise PrenError(reasons[0] if len(found) == 1 else f"None of the {len(found)} images can be read: {reasons[0]}")
    for reason in reasons:
        log.warning("%s", reason)
    if out is not None:
        write_csv(out, *_wide(found))
    if json:
        facts = {
            "inputs": len(found),
            "unreadable": len(reasons),
            "unsure": _unsure(found),
            "top": found.classes.shape[1],
        }
        print_json({**facts, **({"predictions": _records(found)} if out is None else {"out": str(out)})})
    elif out is None:
        stdout().print(table(["input", "class", "score", "confidence", "familiarity"], _long(found), 2))
    else:
        unread = f" {len(reasons)} of them could not be read." if reasons else ""
        unsure = f" {_unsure(found)} of them have no label: none is sure enough." if precision is not None else ""
        say(f"{len(found)} predictions are in {out}.{unread}{unsure}")


def _unsure(found: Predictions) -> int:
    """How many have no label although they can be read."""
    return sum(not error and not labels for error, labels in zip(found.errors, found.labels, strict=True))


def _records(found: Predictions) -> list[dict[str, Any]]:
    """For machines."""
    records = []
    for place, (name, labels) in enumerate(zip(found.names, found.labels, strict=True)):
        scores = found.scores[place] if labels else []
        best = [{"class": label, "score": float(score)} for label, score in zip(labels, scores, strict=True)]
        sure = {key: _known(getattr(found, key)[place]) for key in SURE}
        records.append({"input": name, "classes": best, **sure, "error": found.errors[place] or None})
    return records


def _known(share: float) -> float | None:
    return None if math.isnan(share) else round(float(share), 4)


def _wide(found: Predictions) -> tuple[list[str], list[list[Any]]]:
    """For a file: the header, and a row for every input."""
    ranks = found.classes.shape[1]
    header = ["input", *(f"{what}_{rank + 1}" for rank in range(ranks) for what in ("class", "score")), *SURE, "error"]
    rows: list[list[Any]] = []
    for record in _records(found):
        cells = [cell for best in record["classes"] for cell in (best["class"], best["score"])] or [""] * 2 * ranks
        sure = ["" if record[key] is None else record[key] for key in SURE]
        rows.append([record["input"], *cells, *sure, record["error"] or ""])
    return header, rows


def _long(found: Predictions) -> list[list[Any]]:
    """For people: a line for every class."""
    lines: list[list[Any]] = []
    for record in _records(found):
        none = "cannot be read" if record["error"] else "not sure enough"
        best = [[label["class"], f"{label['score']:.4g}"] for label in record["classes"]] or [[none, ""]]
        sure = ["" if record[key] is None else f"{record[key]:.2f}" for key in SURE]
        for place, cells in enumerate(best):
            lines.append([record["input"], *cells, *sure] if not place else ["", *cells, "", ""])
    return lines
