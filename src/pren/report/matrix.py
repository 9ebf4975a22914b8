"""A confusion matrix for hundreds of classes: confused classes are neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

MOST_CLASSES = 400
MOST_CELLS = 6_000  # the largest are drawn
NAMED = 60  # more classes have no names beside their rows

Cells = Mapping[tuple[str, str], float]  # (row, column) -> number


def order_classes(names: Sequence[str], cells: Cells) -> list[str]:
    """Order names so that confused classes are neighbours (average linkage)."""
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


@dataclass(frozen=True)
class Cell:
    """A square of the drawing: its place, how full it is (0 to 1), and its number."""

    x: float
    y: float
    fill: float
    row: str
    column: str
    value: float
    total: float


@dataclass(frozen=True)
class Matrix:
    """A drawing: classes in order, whether their names are shown, left edge, size of a cell, cells."""

    names: Sequence[str]
    named: bool
    left: float
    size: float
    cells: list[Cell]

    top = 26.0


def draw_matrix(names: Sequence[str], cells: Cells) -> Matrix:
    """Lay out the largest cells, filled by their share of the row.

    Args:
        names: The classes, in the order of rows and columns.
        cells: Those that are not empty.
    """
    place = {name: row for row, name in enumerate(names)}
    totals = dict.fromkeys(names, 0.0)
    for (row, _), value in cells.items():
        totals[row] += value
    named = len(names) <= NAMED
    left, size = (190.0 if named else 34.0), max(5.0, min(34.0, 620 / len(names)))
    largest = sorted(cells.items(), key=lambda cell: -cell[1])[:MOST_CELLS]
    drawn = [
        Cell(
            left + place[column] * size + 0.5,
            Matrix.top + place[row] * size + 0.5,
            0.15 + 0.85 * min(value / (totals[row] or 1.0), 1.0) ** 0.5,
            row,
            column,
            value,
            totals[row],
        )
        for (row, column), value in largest
    ]
    return Matrix(names, named, left, size, drawn)
