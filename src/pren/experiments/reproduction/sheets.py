"""A table of a reproduction, for people (Markdown, LaTeX) and for programs (CSV)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pren.experiments.tables import escape_latex, escape_markdown
from pren.files import write_bytes, write_csv


@dataclass(frozen=True)
class Sheet:
    """A table with a title, and what has to be said below it.

    Attributes:
        name: Of its files.
        title: Above it.
        header: The columns; what the paper prints and what was measured never share one.
        rows: Cells as text.
        notes: Sentences.
    """

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """With its title as a heading."""
        header, *rows = [[escape_markdown(cell) for cell in row] for row in (self.header, *self.rows)]
        rule = "|".join(["---", *["---:"] * (len(header) - 1)])
        table = [f"| {' | '.join(row)} |" for row in (header, *rows)]
        notes = [f"- {escape_markdown(note)}" for note in self.notes]
        lines = [f"## {escape_markdown(self.title)}", "", table[0], f"|{rule}|", *table[1:], "", *notes]
        return "\n".join(lines).rstrip() + "\n"

    def latex(self) -> str:
        """A table that needs no package."""
        header, *rows = [" & ".join(map(escape_latex, row)) + r" \\" for row in (self.header, *self.rows)]
        caption = " ".join(escape_latex(text) for text in (f"{self.title}.", *self.notes))
        columns = "l" + "r" * (len(self.header) - 1)
        lines = ["% made by 'pren reproduce'", r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{columns}}}"]
        lines += [r"\hline", header, r"\hline", *rows, r"\hline", r"\end{tabular}", rf"\caption{{{caption}}}"]
        return "\n".join([*lines, r"\end{table}", ""])

    def write(self, folder: Path) -> None:
        """Write NAME.md, NAME.tex and NAME.csv."""
        write_bytes(folder / f"{self.name}.md", self.markdown().encode())
        write_bytes(folder / f"{self.name}.tex", self.latex().encode())
        write_csv(folder / f"{self.name}.csv", self.header, self.rows)
