"""What a review leaves: labels in every format, sorted folders, an ordinary run."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from pren.data.folder.labels import POOL
from pren.images.files import ImageFiles
from pren.label.formats import write_labels
from pren.label.predictions import Predictions, Row
from pren.label.sorting import Sorter
from pren.review.session import Session
from pren.review.writing import write_run_apart
from pren.runs.reopening import load_result

FILES = {
    "csv": "predictions.csv",
    "jsonl": "predictions.jsonl",
    "label-studio": "label-studio.json",
    "fiftyone": "labels.json",
}


def final_labels(session: Session) -> Predictions:
    """The labels of every photograph: those that a person gave, then those of the latest fit; strangers have none."""
    snapshot, verdicts = session.snapshot, session.journal.verdicts()
    names, rows = snapshot.table.names, []
    for place, file in enumerate(session.files):
        verdict, row = verdicts.get(file), int(snapshot.labels[place])
        sure, familiar = float(snapshot.confidence[place]), float(snapshot.familiarity[place])
        known = None if familiar != familiar else familiar
        if verdict is not None and verdict.mark == "stranger":
            rows.append(Row(file, familiarity=known))
        elif verdict is not None and verdict.name in names:
            rows.append(Row(file, ((verdict.name, 1.0),), 1.0, known))
        elif row < 0:
            rows.append(Row(file, error="It has no label: it cannot be read, or none is sure enough."))
        else:
            best = (names[row], float(snapshot.scores[place]))
            rows.append(Row(file, (best,), None if sure != sure else round(sure, 4), known))
    return Predictions.of_rows(rows, snapshot.table)


def download(session: Session, form: str) -> tuple[str, bytes]:
    """The labels as a file: its name and its content."""
    labels = final_labels(session)
    if form in ("label-studio", "fiftyone"):  # they need paths that lead somewhere
        folder = (session.data / POOL).absolute()
        labels = replace(labels, inputs=tuple(str(folder / name) for name in labels.inputs))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / FILES[form]
        write_labels(labels, path, form)
        return FILES[form], path.read_bytes()


def write_run(session: Session, sort: bool) -> dict[str, str | None]:
    """Fit once more, into the next free folder beside the run; sort the photographs beside it if asked."""
    out = _free(session.run, "")
    write_run_apart(session.run, out, session.moved)
    paths = load_result(out).paths
    assert paths is not None
    folder: Path | None = None
    if sort:
        folder = _free(session.run, "-sorted")
        labels = final_labels(session)
        sorter = Sorter(folder, ImageFiles(session.data / POOL, list(session.files)), labels.table.names, "link")
        for _ in sorter.watch([list(labels.rows())]):
            pass
    report = paths.report
    return {
        "run": str(out),
        "labels": str(paths.labels),
        "report": None if report is None else str(report),
        "sorted": None if folder is None else str(folder),
    }


def _free(run: Path, ending: str) -> Path:
    """A folder beside the run that does not exist yet."""
    number = 2
    while (path := run.absolute().with_name(f"{run.absolute().name}-{number}{ending}")).exists():
        number += 1
    return path
