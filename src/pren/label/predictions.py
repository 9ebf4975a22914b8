"""Labels of inputs, the same for `fit` and `predict`: arrays in memory, rows in a table."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.foundation.errors import PrenError, reason
from pren.foundation.files import from_cell
from pren.problem import UNKNOWN, ClassTable


class Row(NamedTuple):
    """The result of one input, the same in every format.

    Attributes:
        input: The path of its file, or its number where inputs are arrays.
        classes: Its best classes and their scores, best first; none if it has no label.
        confidence: How likely the best class is right, from 0 to 1; None if that is not known.
        familiarity: From 0 (unlike all classes) to 1; None if that is not known.
        error: Why it cannot be read; "" if it can.
    """

    input: str
    classes: tuple[tuple[str, float], ...] = ()
    confidence: float | None = None
    familiarity: float | None = None
    error: str = ""

    @property
    def label(self) -> str:
        """The best class; "" if there is none."""
        return self.classes[0][0] if self.classes else ""

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "input": self.input,
            "classes": [{"class": name, "score": score} for name, score in self.classes],
            "confidence": self.confidence,
            "familiarity": self.familiarity,
            "error": self.error or None,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Row:
        """The inverse of `to_json`."""
        classes = tuple((best["class"], best["score"]) for best in content["classes"])
        return cls(content["input"], classes, content["confidence"], content["familiarity"], content["error"] or "")


@dataclass(frozen=True, eq=False)
class Predictions:
    """The best classes of N inputs.

    Attributes:
        inputs: (N,) the path of each file, or the number of each array.
        classes: (N, top) rows of the class table, best first; `UNKNOWN` (-1) where an input cannot be read, no label
            is sure enough, or there are fewer candidates.
        scores: (N, top) their scores; NaN where there is no class.
        confidence: (N,) how likely the best class is right, from 0 to 1; NaN if the model was not rehearsed, or
            if the candidates are not those that it was fitted for.
        familiarity: (N,) from 0 (unlike all classes) to 1; NaN if that is not known.
        errors: (N,) why an input cannot be read; "" if it can.
        table: The class table.
    """

    inputs: tuple[str, ...]
    classes: NDArray[np.int64]
    scores: NDArray[np.float64]
    confidence: NDArray[np.float64]
    familiarity: NDArray[np.float64]
    errors: tuple[str, ...]
    table: ClassTable

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        labelled = int((self.classes[:, 0] != UNKNOWN).sum()) if self.classes.size else 0
        return f"Predictions({labelled} of {len(self)} inputs have a label, {sum(map(bool, self.errors))} unreadable)"

    @property
    def labels(self) -> NDArray[np.str_]:
        """(N,) the name of the best class of every input; "" where there is none."""
        best = self.classes[:, 0] if self.classes.size else np.full(len(self), UNKNOWN)
        return self.table.named(best)

    @property
    def top(self) -> int:
        """How many classes per input."""
        return int(self.classes.shape[1])

    def rows(self) -> Iterator[Row]:
        """Every input as a row."""
        names = self.table.names
        for place, name in enumerate(self.inputs):
            best = zip(self.classes[place].tolist(), self.scores[place].tolist(), strict=True)
            yield Row(
                name,
                tuple((names[row], score) for row, score in best if row != UNKNOWN),
                _share(self.confidence[place]),
                _share(self.familiarity[place]),
                # A path can be any bytes, but tables are UTF-8.
                self.errors[place].encode("utf-8", "backslashreplace").decode(),
            )

    def with_unreadable(self, reasons: Mapping[str, str]) -> Predictions:
        """The same sorted by name, with inputs that cannot be read, by name and reason."""
        names, more = [*self.inputs, *reasons], len(reasons)
        errors = [*self.errors, *reasons.values()]
        order = sorted(range(len(names)), key=names.__getitem__)

        def extended(array: NDArray[Any], value: float) -> NDArray[Any]:
            return np.concatenate([array, np.full((more, *array.shape[1:]), value, dtype=array.dtype)])[order]

        return Predictions(
            tuple(names[place] for place in order),
            extended(self.classes, UNKNOWN),
            extended(self.scores, np.nan),
            extended(self.confidence, np.nan),
            extended(self.familiarity, np.nan),
            tuple(errors[place] for place in order),
            self.table,
        )

    @classmethod
    def of_rows(cls, rows: Iterable[Row], table: ClassTable) -> Predictions:
        """Rows as arrays.

        Raises:
            PrenError: If a class is not in the table.
        """
        known, place = list(rows), {name: row for row, name in enumerate(table.names)}
        top = max([1, *(len(row.classes) for row in known)])
        classes, scores = np.full((len(known), top), UNKNOWN), np.full((len(known), top), np.nan)
        for number, row in enumerate(known):
            for rank, (name, score) in enumerate(row.classes):
                if name not in place:
                    raise PrenError("damaged", f"{name!r} is a label of {row.input!r}, but not a class of the model.")
                classes[number, rank], scores[number, rank] = place[name], score
        return cls(
            tuple(row.input for row in known),
            classes,
            scores,
            _array(row.confidence for row in known),
            _array(row.familiarity for row in known),
            tuple(row.error for row in known),
            table,
        )


def header(top: int) -> list[str]:
    """The columns of a table with `top` classes per input."""
    more = (f"{what}_{rank}" for rank in range(2, top + 1) for what in ("class", "score"))
    return ["input", "class", "score", "confidence", "familiarity", *more, "error"]


def cells(row: Row, top: int) -> list[Any]:
    """A row of that table; None for an empty cell."""
    best: list[Any] = [cell for pair in row.classes for cell in pair]
    best += [None] * (2 * top - len(best))
    return [row.input, *best[:2], row.confidence, row.familiarity, *best[2:], row.error or None]


def read_csv(path: Path) -> Iterator[Row]:
    """Read a table of labels row by row; a `PrenError` if it is something else."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            columns = list(reader.fieldnames or [])
            if columns[:5] != header(1)[:5]:
                raise ValueError(f"its columns are {columns[:5]}")
            ranks = ["", *(name.removeprefix("class") for name in columns if name.startswith("class_"))]
            for row in reader:
                best = [(row[f"class{rank}"], row[f"score{rank}"]) for rank in ranks]
                yield Row(
                    from_cell(row["input"]),
                    tuple((from_cell(name), float(score)) for name, score in best if name),
                    _number(row["confidence"]),
                    _number(row["familiarity"]),
                    from_cell(row["error"]),
                )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, csv.Error) as error:
        raise PrenError("damaged", f"{path} is not a table of labels that pren wrote: {reason(error)}") from error


def _share(value: float) -> float | None:
    """Rounded: more digits would be noise."""
    return None if math.isnan(value) else round(float(value), 4)


def _array(values: Iterable[float | None]) -> NDArray[np.float64]:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _number(cell: str) -> float | None:
    return float(cell) if cell else None
