"""Figures of labels: precision against coverage, every class, confusions, the map, training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pren.evaluation import ClassResult
from pren.report.charts import Chart, Points, Series, line_chart
from pren.report.evidence import Evidence
from pren.report.facts import RunFacts, most_confused
from pren.report.image import mean_confidence, share_right
from pren.report.matrix import MOST_CLASSES, Matrix, draw_matrix, order_classes
from pren.report.scatter import Drawing, draw_map
from pren.report.words import percent
from pren.trust.confidence import SURE

CURVE_POINTS = 80
BESIDE = 10  # up to this many classes, a table fits beside the matrix
SHOWN_CONFUSIONS = 40


@dataclass(frozen=True)
class ClassRow:
    """A class: its labels, their confidence, the answers, and the class it is confused with most."""

    name: str
    seen: bool
    count: int
    confidence: float | None
    sure: int
    doubtful: int
    scored: ClassResult | None
    right: float | None
    partner: str | None


@dataclass(frozen=True)
class Confusions:
    """The matrix, None for too many classes; its largest cells; whether they fit beside it."""

    matrix: Matrix | None
    largest: list[tuple[str, str, float]]
    beside: bool


def coverage(facts: RunFacts) -> Chart | None:
    """The share of right labels among the surest ones."""
    sure = [image for image in facts.images if image.confidence is not None]
    if len(sure) < 2:
        return None
    lines = [Series("right, as expected", _curve([image.confidence for image in sure]), dashed=True)]
    known = [image for image in sure if image.truth]
    if known:
        lines.insert(0, Series("right, by the answers", _curve([not image.wrong for image in known])))
    least = min(value for line in lines for _, value in line.points)
    return line_chart(
        "Precision against coverage",
        lines,
        "share of the labels that are used, the surest first",
        show_x=percent,
        show_y=percent,
        bounds=(max(0.0, np.floor(10 * least - 0.5) / 10), 1.0),
    )


def _curve(values: Sequence[float | None]) -> Points:
    """Means of the first values over shares of all; the first few are left out as noise."""
    count = len(values)
    means: NDArray[np.float64] = np.cumsum(np.array(values, dtype=np.float64)) / np.arange(1, count + 1)
    places = np.unique(np.linspace(min(count, 1 + count // 50) - 1, count - 1, CURVE_POINTS).astype(int))
    return [((place + 1) / count, float(means[place])) for place in places.tolist()]


def class_table(facts: RunFacts) -> list[ClassRow]:
    """Every class in a row."""
    scored = {} if facts.metrics is None else {row.name: row for row in facts.metrics.per_class}
    partners: dict[str, str] = {}
    for one, other, _ in most_confused(facts.confused, len(facts.confused)):
        partners.setdefault(one, other)
        partners.setdefault(other, one)
    rows, seen = [], set(facts.seen)
    for name in facts.candidates:
        images = facts.of_class[name]
        sure = sum(image.confidence is not None and image.confidence >= SURE for image in images)
        doubtful = sum(image.doubtful for image in images)
        known = (mean_confidence(images), sure, doubtful, scored.get(name), share_right(images), partners.get(name))
        rows.append(ClassRow(name, name in seen, len(images), *known))
    return rows


def confusions(facts: RunFacts) -> Confusions | None:
    """The matrix, and its largest cells."""
    cells = {pair: value for pair, value in facts.confused.items() if value > 0}  # a confidence of 1 gives 0
    there = sorted({name for pair in cells for name in pair})
    wrong = [(value, one, other) for (one, other), value in cells.items() if one != other and value >= 0.05]
    if len(there) < 2 or not wrong:
        return None
    matrix = draw_matrix(order_classes(there, cells), cells) if len(there) <= MOST_CLASSES else None
    largest = [(one, other, value) for value, one, other in sorted(wrong, reverse=True)[:SHOWN_CONFUSIONS]]
    return Confusions(matrix, largest, len(there) <= BESIDE)


def the_map(facts: RunFacts) -> Drawing | None:
    """Inputs and classes in two dimensions."""
    return None if facts.details is None else draw_map(facts.details.map, {i.place: i for i in facts.images})


def training(facts: RunFacts) -> list[Chart] | None:
    """A chart for every figure of rounds."""
    charts = []
    for curve in facts.curves:
        line = [Series(curve.title, curve.points)]
        if curve.share:
            charts.append(line_chart(curve.title, line, "round", show_y=percent, bounds=(0, 1), whole=True))
        else:
            charts.append(line_chart(curve.title, line, "round", show_y="{:g}".format, whole=True))
    return charts or None


def attributes(facts: RunFacts) -> Sequence[Evidence] | None:
    """Which attributes support a label; empty if the method has no such sum."""
    return None if facts.details is None else facts.details.evidence or ()


def details(facts: RunFacts) -> Mapping[str, Mapping[str, str]]:
    """Parameters, versions, hashes."""
    return facts.record
