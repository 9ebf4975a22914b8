"""A comparison as tables: Markdown and LaTeX for people, CSV for programs.

Names and reasons can hold any text, so Markdown and LaTeX are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from pren.evaluation import FIGURES, TITLES
from pren.foundation.errors import visible
from pren.foundation.files import write_bytes, write_csv
from pren.problem import Setting
from pren.research.summary import Row, Spread

COSTS = ("fit s", "predict s", "peak MB")
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "†": r"\dag{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def write_tables(rows: Sequence[Row], setting: Setting, folder: Path) -> None:
    """Write table.md, table.tex and table.csv."""
    write_bytes(folder / "table.md", markdown(rows, setting).encode())
    write_bytes(folder / "table.tex", latex(rows, setting).encode())
    write_csv(folder / "table.csv", *csv_table(rows, setting))


def table_of(rows: Sequence[Row], setting: Setting) -> tuple[list[str], list[list[str]], list[list[bool]]]:
    """The table of one data set as plain text.

    Returns:
        The header, the cells, and which of them hold the best figure, after rounding.
    """
    names, noted = FIGURES[setting], any(row.note() for row in rows)
    header = ["method", "runs", *(TITLES[name] for name in names), *COSTS, *(["note"] if noted else [])]
    best = {name: max((_shown(row.figures[name]) for row in rows), default=None) for name in names}
    cells, bold = [], []
    for row in rows:
        figures = [row.figures[name] for name in names]
        costs = [_seconds(row.fit_seconds), _seconds(row.predict_seconds), _number(row.peak_bytes, 1e-6, 0)]
        note = [row.note()] if noted else []
        cells.append([row.method, str(row.runs), *map(percent_spread, figures), *costs, *note])
        is_best = [row.figures[name] is not None and _shown(row.figures[name]) == best[name] for name in names]
        bold.append([False, False, *is_best, *[False] * (len(header) - 2 - len(names))])
    return header, cells, bold


def markdown(rows: Sequence[Row], setting: Setting) -> str:
    """One table for each data set."""
    lines = []
    for title, (header, *cells), legend in _tables(rows, setting, escape_markdown, "**%s**"):
        rule = "|".join(["---", *["---:"] * (len(header) - 1)])
        table = [f"| {' | '.join(line)} |" for line in cells]
        lines += [f"## {title}", "", f"| {' | '.join(header)} |", f"|{rule}|", *table, "", legend, ""]
    return "\n".join(lines)


def latex(rows: Sequence[Row], setting: Setting) -> str:
    """One table for each data set; it needs no package."""
    lines = ["% made by 'pren compare'"]
    for title, (names, *cells), legend in _tables(rows, setting, escape_latex, r"\textbf{%s}"):
        columns = ["l", *["r"] * (len(names) - 1)]
        if names[-1] == "note":
            columns[-1] = "p{4cm}"
        header, *table = [" & ".join(line) + r" \\" for line in (names, *cells)]
        lines += [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{''.join(columns)}}}"]
        lines += [r"\hline", header, r"\hline", *table, r"\hline", r"\end{tabular}"]
        lines += [rf"\caption{{{title}. {legend}}}", r"\end{table}", ""]
    return "\n".join(lines)


def csv_table(rows: Sequence[Row], setting: Setting) -> tuple[list[str], list[list[object]]]:
    """Header and rows with full precision: fractions, seconds and bytes."""
    names = FIGURES[setting]
    measured = [*names, "fit_seconds", "predict_seconds", "peak_bytes"]
    header = ["data", "setting", "method", "runs", "failed", *(f"{n}_{k}" for n in measured for k in ("mean", "std"))]
    table: list[list[object]] = []
    for row in rows:
        spreads = [*(row.figures[name] for name in names), row.fit_seconds, row.predict_seconds, row.peak_bytes]
        figures = [value for s in spreads for value in ((s.mean, s.std) if s is not None else (None, None))]
        table.append([row.data, setting, row.method, row.runs, row.failed, *figures, row.reason or ""])
    return [*header, "reason"], table


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&$])", r"\\\1", _one_line(text))


def escape_latex(text: str) -> str:
    """Text that LaTeX shows as it is, on one line."""
    return "".join(LATEX.get(character, character) for character in _one_line(text))


def percent_spread(spread: Spread | None) -> str:
    """0.664 as 66.4, with ± the standard deviation if it is known."""
    return _number(spread, 100, 1)


def _seconds(spread: Spread | None) -> str:
    """About three digits: 0.26, 15.9, 624."""
    return _number(spread, 1, 2 if spread is None or spread.mean < 10 else 1 if spread.mean < 100 else 0)


def _number(spread: Spread | None, factor: float, digits: int) -> str:
    if spread is None:
        return "–"
    mean = f"{factor * spread.mean:.{digits}f}"
    return mean if spread.std is None else f"{mean} ± {factor * spread.std:.{digits}f}"


def _shown(spread: Spread | None) -> float:
    """The mean as it is shown; -1 if there is none."""
    return -1.0 if spread is None else float(f"{100 * spread.mean:.1f}")


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def _tables(
    rows: Sequence[Row], setting: Setting, escape: Callable[[str], str], bold: str
) -> Iterator[tuple[str, list[list[str]], str]]:
    """For each data set its title, the lines of its table with the header first, and a legend."""
    for data, group in groupby(rows, key=lambda row: row.data):
        shown = list(group)
        header, cells, best = table_of(shown, setting)
        lines = [[escape(text) for text in line] for line in (header, *cells)]
        for line, marks in zip(lines[1:], best, strict=True):
            line[:] = [bold % text if mark else text for text, mark in zip(line, marks, strict=True)]
        yield f"{escape(data)} ({setting})", lines, escape(_legend(shown))


def _legend(rows: Sequence[Row]) -> str:
    several = any(row.runs > 1 for row in rows)
    over = "Per cent; mean ± standard deviation over runs with different seeds" if several else "Per cent"
    given = [row.method for row in rows if row.given]
    params = f"parameters given for {', '.join(given)}, defaults for the others" if given else "default parameters"
    daggered = " † Re-implemented from the published description." if any("†" in row.method for row in rows) else ""
    return f"{over}; {params if len(given) < len(rows) else 'parameters given for all methods'}.{daggered}"
