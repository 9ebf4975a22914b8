"""The tables of a run that have a row per image of the pool."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pren.foundation.errors import PrenError, reason
from pren.foundation.files import from_cell, write_csv
from pren.problem import UNKNOWN
from pren.trust import Labels

COLUMNS = ("class", "score", "confidence", "familiarity")


class PredictedImage(NamedTuple):
    """A row of predictions.csv; confidence and familiarity are None where nobody knows."""

    name: str
    label: str
    confidence: float | None
    familiarity: float | None
    error: str


@dataclass(frozen=True)
class ImageTables:
    """Writes tables that call an image by its name, or by its place in the pool where images have no names.

    Attributes:
        names: Of the images of the pool, None if they have none; known to whoever has the data.
        unreadable: Why an image is not in the pool, by its name.
    """

    names: Sequence[str] | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def write_pseudo_labels(self, path: Path, labels: Iterable[tuple[int, str]]) -> None:
        """Write places in the pool and their classes."""
        if self.names is None:
            write_csv(path, ("image", "class"), labels)
        else:
            write_csv(path, ("file", "class"), sorted((self.names[place], label) for place, label in labels))

    def write_predictions(self, path: Path, labels: Labels, classes: Sequence[str]) -> None:
        """Write what is known of every image; files that cannot be read have the reason instead.

        Args:
            path: The file.
            labels: Of the pool.
            classes: The names of all classes.
        """

        def cells(place: int) -> tuple[Any, ...]:
            row, score = labels.classes[place], float(labels.scores[place])
            name = "" if row == UNKNOWN else classes[row]
            return name, score, share(labels.confidence[place]), share(labels.familiarity[place])

        if self.names is None:
            write_csv(path, ("image", *COLUMNS), ((place, *cells(place)) for place in range(len(labels.classes))))
            return
        nothing = [""] * len(COLUMNS)
        files = sorted([*zip(self.names, range(len(labels.classes)), strict=True), *((n, -1) for n in self.unreadable)])
        write_csv(
            path,
            ("file", *COLUMNS, "error"),
            (
                (name, *nothing, self.unreadable[name]) if place < 0 else (name, *cells(place), "")
                for name, place in files
            ),
        )


def share(value: float) -> float | str:
    """A share as tables have it: four digits, nothing where it is not known."""
    return "" if math.isnan(value) else round(float(value), 4)


def read_predictions(path: Path) -> Iterator[PredictedImage]:
    """Read what `write_predictions` wrote, row by row: there may be millions."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file, strict=True):
                yield PredictedImage(
                    from_cell(row.get("file") or row["image"]),
                    from_cell(row["class"]),
                    _number(row["confidence"]),
                    _number(row["familiarity"]),
                    from_cell(row.get("error") or ""),
                )
    except (OSError, ValueError, LookupError, TypeError, csv.Error) as error:
        raise PrenError("damaged", f"{path} cannot be read as what pren wrote: {reason(error)}") from error


def _number(cell: str) -> float | None:
    return float(cell) if cell else None
