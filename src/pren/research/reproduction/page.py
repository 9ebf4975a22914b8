"""The report of what `pren reproduce` keeps: its tables, the paper's columns beside ours, and its curves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pren.report.html import Html, join, percent, tag
from pren.report.opening import card
from pren.report.page import Section, table
from pren.report.svg import Series, line_chart
from pren.research.reproduction.sheets import Sheet
from pren.research.reproduction.tables import MISSING


def sheet_sections(sheets: Sequence[Sheet]) -> list[Section]:
    """One section for each table; a column of which nothing can be computed is left to its notes."""
    return [_section(sheet.without(MISSING)) for sheet in sheets]


def verdicts(sheets: Sequence[Sheet]) -> list[Html]:
    """How many of the paper's claims hold, if they were looked at."""
    found = next((sheet for sheet in sheets if sheet.name == "claims"), None)
    if found is None:
        return []
    counts = Counter(row[1] for row in found.rows)
    return [
        card(verdict.capitalize(), str(count), [f"of {len(found.rows)} claims"]) for verdict, count in counts.items()
    ]


def _section(sheet: Sheet) -> Section:
    texts = set(range(sheet.texts))
    made = table(sheet.header, sheet.rows, id=f"{sheet.name}-table", caption=sheet.title, texts=texts)
    lines = [Series(curve.title, curve.points) for curve in sheet.curves]
    chart = line_chart(sheet.title, lines, x=sheet.axis, show_y=percent, whole=True) if lines else None
    notes = tag("ul", [tag("li", note) for note in sheet.notes]) if sheet.notes else None
    return Section(sheet.name, re.split(r",| \(", sheet.title)[0], sheet.title, join([chart, made, notes]))
