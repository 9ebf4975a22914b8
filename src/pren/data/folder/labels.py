"""``answers.csv`` and ``labels.csv`` of a folder of photographs: tables of files in ``unlabelled`` and their classes.

Answers are for the evaluation only. Labels are given by a person, for training.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pren.data.folder.class_tables import ClassRows
from pren.data.folder.findings import Findings
from pren.data.tables import normal, read_table
from pren.foundation.errors import quoted

POOL, ANSWERS, LABELS = "unlabelled", "answers.csv", "labels.csv"
HEADERS = {ANSWERS: "file,class", LABELS: "file,class,+"}  # the columns that `pren suggest` adds are for people


class Label(NamedTuple):
    """A class, and the line that names it."""

    name: str
    line: int


def read_labels(
    folder: Path, file: str, pool: list[str], classes: ClassRows | None, findings: Findings
) -> dict[int, Label]:
    """Read such a table.

    Args:
        folder: The folder of the file.
        file: Its name.
        pool: The paths of all photographs in ``unlabelled``.
        classes: The known classes; None if they cannot be read.
        findings: Collects mistakes.

    Returns:
        The labels by the place of a photograph in `pool`, without rows that have no class.
    """
    table = read_table(folder, file, HEADERS[file], findings)
    places = {normal(name): place for place, name in enumerate(pool)}
    places |= {name: place for place, name in enumerate(pool)}
    first: dict[int, int] = {}  # the line of a place
    labels: dict[int, Label] = {}
    for row in () if table is None else table.rows:
        if findings.full(file):
            break
        image, name = row.cells[0], normal(row.cells[1])
        place = places.get(image, places.get(normal(image)))
        if place is None:
            off = image.removeprefix(f"{POOL}/")
            near = f" Leave {POOL}/ off." if off != image and off in places else findings.nearest(image, places)
            findings.add(file, f"there is no photograph {quoted(image)} in {POOL}.{near}", row.line)
        elif first.setdefault(place, row.line) != row.line:
            findings.add(file, f"{quoted(image)} is already in line {first[place]}: remove one.", row.line)
        if not name or classes is None:
            continue
        if name in classes.known:
            if place is not None:
                labels.setdefault(place, Label(name, row.line))
        elif classes.complete:
            near = findings.nearest(name, classes.known)
            findings.add(file, f"class {quoted(name)} has no row in {classes.file}.{near}", row.line)
    return labels


def compare(labels: dict[int, Label], answers: dict[int, Label], pool: list[str], findings: Findings) -> None:
    """Note where the two tables disagree."""
    for place in labels.keys() & answers.keys():
        label, answer = labels[place], answers[place]
        if label.name != answer.name:
            message = (
                f"{quoted(pool[place])} is {quoted(label.name)} here and {quoted(answer.name)} in {ANSWERS}, line "
                f"{answer.line}: correct one of them. Training uses the label."
            )
            findings.add(LABELS, message, label.line, "warning")


def note_seen(answers: dict[int, Label], seen: set[str], findings: Findings) -> None:
    """Note answers of seen classes, which do not count in the setting 'zsl'."""
    barred = sorted((answer for answer in answers.values() if answer.name in seen), key=lambda answer: answer.line)
    if barred:
        others = f" (lines like this: {len(barred)})" if len(barred) > 1 else ""
        message = (
            f"{quoted(barred[0].name)} is a seen class{others}: in the setting 'zsl' such answers do not count. "
            "Choose 'gzsl', or remove these photographs from the pool."
        )
        findings.add(ANSWERS, message, barred[0].line, "warning")


def read_given(folder: Path) -> list[tuple[str, str]]:
    """The rows of ``labels.csv`` that name a class, unchecked; none if there is no such file."""
    if not (folder / LABELS).exists():
        return []
    table = read_table(folder, LABELS, HEADERS[LABELS], Findings())
    return [] if table is None else [(row.cells[0], row.cells[1]) for row in table.rows if row.cells[1]]
