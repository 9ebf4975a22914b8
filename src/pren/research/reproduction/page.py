"""The report of `pren reproduce`: tables with the paper's columns beside ours, and curves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pren.report.charts import Chart, Series, line_chart
from pren.report.page import Section
from pren.report.words import percent
from pren.research.reproduction.sheets import Sheet
from pren.research.reproduction.tables import MISSING


@dataclass(frozen=True)
class SheetFacts:
    """A table, its short title, and its curves."""

    sheet: Sheet
    short: str
    chart: Chart | None


def sheet_section(sheet: Sheet) -> Section:
    """A table without columns whose data are missing; the notes name them."""
    sheet = sheet.without(MISSING)
    lines = [Series(curve.title, curve.points) for curve in sheet.curves]
    chart = line_chart(sheet.title, lines, sheet.axis, show_y=percent, whole=True) if lines else None
    return Section(sheet.name, "sheet", SheetFacts(sheet, re.split(r",| \(", sheet.title)[0], chart))


def verdicts(sheets: Sequence[Sheet]) -> Counter[str]:
    """How many claims have each verdict."""
    return Counter(row[1] for sheet in sheets if sheet.name == "claims" for row in sheet.rows)
