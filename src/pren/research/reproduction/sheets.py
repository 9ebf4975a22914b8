"""A table of a reproduction: for people (Markdown, LaTeX), for programs (CSV), and for the report (JSON)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from pren.foundation.errors import PrenError
from pren.foundation.files import read_bytes, write_bytes, write_csv, write_json
from pren.research.folder import SHEETS_FILE
from pren.research.tables import escape_latex, escape_markdown

MOST_BYTES = 1 << 22
HERE, PAPER = ", here", ", paper"  # how columns end


class Curve(BaseModel):
    """A line of a figure: (x, y) with y as a fraction."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    title: str
    points: Sequence[tuple[float, float]]


class Sheet(BaseModel):
    """A table with a title and notes.

    Attributes:
        name: Of its files.
        title: Above it.
        header: The columns; figures of the paper and of this computer have separate ones.
        rows: Cells as text.
        notes: Sentences below it.
        texts: How many columns, from the first on, hold words.
        axis: The title of the curves' x axis.
        curves: Of the figure.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = []
    texts: int = 1
    axis: str = ""
    curves: list[Curve] = []

    def without(self, cell: str) -> Sheet:
        """Leave out columns in which every cell is this one, and the paper's columns beside them."""
        empty = {place for place in range(1, len(self.header)) if all(row[place] == cell for row in self.rows)}
        gone = empty | {
            place - 1 for place in empty if self.header[place - 1] == self.header[place].replace(HERE, PAPER)
        }
        kept = [place for place in range(len(self.header)) if place not in gone]
        rows = [[row[place] for place in kept] for row in self.rows]
        return self.model_copy(update={"header": [self.header[place] for place in kept], "rows": rows})

    def markdown(self) -> str:
        """Markdown, with the title as a heading."""
        header, *rows = [[escape_markdown(cell) for cell in row] for row in (self.header, *self.rows)]
        rule = "|".join(["---"] * self.texts + ["---:"] * (len(header) - self.texts))
        table = [f"| {' | '.join(row)} |" for row in (header, *rows)]
        notes = [f"- {escape_markdown(note)}" for note in self.notes]
        lines = [f"## {escape_markdown(self.title)}", "", table[0], f"|{rule}|", *table[1:], "", *notes]
        return "\n".join(lines).rstrip() + "\n"

    def latex(self) -> str:
        """LaTeX that needs no package."""
        header, *rows = [" & ".join(map(escape_latex, row)) + r" \\" for row in (self.header, *self.rows)]
        caption = " ".join(escape_latex(text) for text in (f"{self.title}.", *self.notes))
        columns = "l" * self.texts + "r" * (len(self.header) - self.texts)
        lines = ["% made by 'pren reproduce'", r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{columns}}}"]
        lines += [r"\hline", header, r"\hline", *rows, r"\hline", r"\end{tabular}", rf"\caption{{{caption}}}"]
        return "\n".join([*lines, r"\end{table}", ""])

    def write(self, folder: Path) -> None:
        """Write NAME.md, NAME.tex and NAME.csv."""
        write_bytes(folder / f"{self.name}.md", self.markdown().encode())
        write_bytes(folder / f"{self.name}.tex", self.latex().encode())
        write_csv(folder / f"{self.name}.csv", self.header, self.rows)


class _Sheets(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sheets: list[Sheet]


def keep_sheets(folder: Path, sheets: Sequence[Sheet]) -> None:
    """Write sheets, and add them to `SHEETS_FILE`; one of the same name is replaced."""
    known = {sheet.name: sheet for sheet in read_sheets(folder)} | {sheet.name: sheet for sheet in sheets}
    for sheet in sheets:
        sheet.write(folder)
    write_json(folder / SHEETS_FILE, _Sheets(sheets=list(known.values())).model_dump(mode="json"))


def read_sheets(folder: Path) -> list[Sheet]:
    """The sheets of a folder; none if nothing was reproduced there."""
    path = folder / SHEETS_FILE
    if not path.exists():
        return []
    try:
        return _Sheets.model_validate_json(read_bytes(path, MOST_BYTES)).sheets
    except ValidationError as error:
        message = f"{path} is damaged: remove it, and run 'pren reproduce' again with --stored."
        raise PrenError("damaged", message) from error
