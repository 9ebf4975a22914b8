"""The result of a benchmark: a table and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Table:
    """A title, rows under columns, and notes.

    Attributes:
        title: One line.
        columns: Their headings, with units.
        rows: Cells as they are printed.
        notes: Sentences below the table.
    """

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """For a terminal."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        lines = [self.title, _padded(self.columns, widths), "  ".join("-" * width for width in widths)]
        lines += [_padded(row, widths) for row in self.rows]
        return "\n".join([*lines, *self.notes])

    def markdown(self) -> str:
        """For a page."""
        lines = [_cells(self.columns), _cells(["---"] + ["---:"] * (len(self.columns) - 1)), *map(_cells, self.rows)]
        notes = "".join(f"\n\n{note}" for note in self.notes)
        return f"### {self.title}\n\n" + "\n".join(lines) + notes


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    """The first column to the left, the others to the right."""
    first, *rest = row
    return "  ".join([first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(rest, widths[1:], strict=True))])


def _cells(row: Sequence[str]) -> str:
    return f"| {' | '.join(row)} |"
