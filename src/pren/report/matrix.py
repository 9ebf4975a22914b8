"""A confusion matrix that stays readable with hundreds of classes: classes that are confused stand side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from pren.report.html import Html, number, tag

MOST_CLASSES = 400
MOST_CELLS = 6_000  # the largest are drawn
NAMED = 60  # up to so many classes have their names beside their rows
NAME_LENGTH = 26

Cells = Mapping[tuple[str, str], float]  # (row, column) -> how much


def order_classes(names: Sequence[str], cells: Cells) -> list[str]:
    """Names so that those with much between them are neighbours (average linkage)."""
    if len(names) < 3:
        return list(names)
    place = {name: row for row, name in enumerate(names)}
    near: NDArray[np.float64] = np.zeros((len(names), len(names)))
    for (row, column), value in cells.items():
        near[place[row], place[column]] += value
    near += near.T
    np.fill_diagonal(near, 0.0)
    distance = 1 / (1 + near)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=len(names) <= MOST_CLASSES)
    return [names[leaf] for leaf in leaves_list(tree)]


def matrix(names: Sequence[str], cells: Cells, *, rows: str, columns: str, count: str) -> Html:
    """A figure.

    Args:
        names: The classes, in the order of rows and columns.
        cells: Those that are not empty.
        rows: What the rows are.
        columns: What the columns are.
        count: What is counted, such as "images".
    """
    named = len(names) <= NAMED
    size = max(5.0, min(34.0, 620 / len(names)))
    left, top, side = (190.0 if named else 34.0), 26.0, size * len(names)
    parts = [tag("rect", x=left, y=top, width=side, height=side, class_="paper")]
    parts += _labels(names, named, left, top, size)
    parts += _cells(names, cells, count, left, top, size)
    width, height = left + side + 6, top + side + 6
    label = f"{rows} against {columns}, {len(names)} classes; the table below names the largest."
    drawing = tag(
        "svg", parts, viewBox=f"0 0 {number(width)} {number(height)}", width=width, role="img", aria_label=label
    )
    how = f"Rows: {rows}. Columns: {columns}, by the number of the row. Point at a cell, or touch it, to read it."
    return tag(
        "figure",
        tag("div", drawing, class_="scroll", tabindex="0", role="region", aria_label=label),
        tag("figcaption", how, " ", tag("span", class_="tip", aria_live="polite")),
        class_="matrix",
    )


def _labels(names: Sequence[str], named: bool, left: float, top: float, size: float) -> list[Html]:
    """Names and numbers of the rows, and the numbers above the columns; of many classes every tenth number."""
    parts = []
    for row, name in enumerate(names):
        x, y = left + (row + 0.5) * size, top + (row + 0.5) * size + 4
        tenth = (row + 1) % 10 == 0
        if named:
            short = name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"
            parts.append(tag("text", f"{short} {row + 1}", x=left - 6, y=y, text_anchor="end"))
        elif tenth:
            parts.append(tag("text", row + 1, x=left - 6, y=y, text_anchor="end", class_="small"))
        if named or tenth:
            parts.append(tag("text", row + 1, x=x, y=top - 7, text_anchor="middle", class_="small"))
    return parts


def _cells(names: Sequence[str], cells: Cells, count: str, left: float, top: float, size: float) -> list[Html]:
    """A square for every cell, the fuller the larger its share of the row; only so many."""
    place = {name: row for row, name in enumerate(names)}
    totals = dict.fromkeys(names, 0.0)
    for (row, _), value in cells.items():
        totals[row] += value
    return [
        tag(
            "rect",
            tag("title", f"{row} → {column}: {number(value)} {count} of {number(totals[row])}"),
            x=left + place[column] * size + 0.5,
            y=top + place[row] * size + 0.5,
            width=size - 1,
            height=size - 1,
            fill_opacity=0.15 + 0.85 * min(value / (totals[row] or 1.0), 1.0) ** 0.5,
            class_="hit" if row == column else "miss",
        )
        for (row, column), value in sorted(cells.items(), key=lambda cell: -cell[1])[:MOST_CELLS]
    ]
