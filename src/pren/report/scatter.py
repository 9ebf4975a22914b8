"""A map of inputs and classes in two dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pren.report.charts import COLOURS
from pren.report.image import ReportedImage

WIDTH, HEIGHT, MARGIN = 640.0, 460.0, 26.0
NAMED = 30  # more classes have no names on the map
NAME_LENGTH = 24
MOST_POINTS = 2_000
FEW_POINTS = 800  # more are smaller
FEWEST_CLASSES = 3  # for axes from centres


@dataclass(frozen=True, eq=False)
class Map:
    """Inputs and class centres.

    Attributes:
        images: (n,) places in the pool.
        at: (n, 2) their coordinates.
        classes: The names of classes with inputs.
        centres: (c, 2) their coordinates.
    """

    images: NDArray[np.int64]
    at: NDArray[np.float64]
    classes: Sequence[str]
    centres: NDArray[np.float64]


@dataclass(frozen=True)
class Dot:
    """An input in the drawing, with the colour of its label."""

    x: float
    y: float
    colour: int
    image: ReportedImage


@dataclass(frozen=True)
class Name:
    """The name of a class in the drawing."""

    text: str
    x: float
    y: float
    colour: int


@dataclass(frozen=True)
class Drawing:
    """A map in the units of its drawing: inputs, class centres (name, x, y), and names."""

    dots: list[Dot]
    crosses: list[tuple[str, float, float]]
    names: list[Name]

    width, height = WIDTH, HEIGHT

    @property
    def radius(self) -> float:
        """Of a dot."""
        return 3.0 if len(self.dots) <= FEW_POINTS else 2.2


def make_map(features: NDArray[np.float64], labels: Sequence[str]) -> Map:
    """Project a pool on the two directions in which its classes are farthest apart (PCA of their centres).

    Args:
        features: (N, d) of the inputs.
        labels: (N,) the class of each.
    """
    from sklearn.decomposition import PCA  # importing it takes a second

    names, rows = np.unique(np.array(labels), return_inverse=True)
    sums = np.zeros((len(names), features.shape[1]))
    np.add.at(sums, rows, features)
    centres = sums / np.bincount(rows)[:, None]
    chosen = np.unique(np.linspace(0, len(features) - 1, min(MOST_POINTS, len(features))).astype(np.int64))
    basis = centres if len(names) >= FEWEST_CLASSES else features[chosen]
    if not (basis != basis[0]).any():  # one point has no directions
        return Map(chosen, np.zeros((len(chosen), 2)), names.tolist(), np.zeros((len(names), 2)))
    dimensions = min(2, *basis.shape)
    pca = PCA(dimensions, svd_solver="full").fit(basis)
    flat = [np.pad(pca.transform(part), ((0, 0), (0, 2 - dimensions))) for part in (features[chosen], centres)]
    return Map(chosen, flat[0], names.tolist(), flat[1])


def draw_map(found: Map, images: Mapping[int, ReportedImage]) -> Drawing:
    """Lay out a map.

    Args:
        found: The map.
        images: By place in the pool.
    """
    low, high = np.quantile(found.at, 0.005, axis=0), np.quantile(found.at, 0.995, axis=0)
    low, high = np.minimum(low, found.centres.min(axis=0)), np.maximum(high, found.centres.max(axis=0))
    span = np.where(high > low, high - low, 1.0)

    def place(points: NDArray[np.float64]) -> NDArray[np.float64]:
        share = np.clip((points - low) / span, -0.01, 1.01)  # outliers are at the edge
        inside = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
        where: NDArray[np.float64] = MARGIN + np.column_stack([share[:, 0], 1 - share[:, 1]]) * inside
        return where

    colours = {name: row % COLOURS for row, name in enumerate(found.classes)}
    dots = [
        Dot(x, y, colours[images[image].label], images[image])
        for image, (x, y) in zip(found.images.tolist(), place(found.at).tolist(), strict=True)
    ]
    centres = place(found.centres)
    crosses = [(name, x, y) for name, (x, y) in zip(found.classes, centres.tolist(), strict=True)]
    return Drawing(dots, crosses, _names(found.classes, centres) if len(found.classes) <= NAMED else [])


def _names(names: Sequence[str], at: NDArray[np.float64]) -> list[Name]:
    """The names of classes above their centres; moved down where two would overlap."""
    taken: list[tuple[float, float, float]] = []
    made = []
    for row in np.argsort(at[:, 1]).tolist():
        short = names[row] if len(names[row]) <= NAME_LENGTH else f"{names[row][: NAME_LENGTH - 1]}…"
        half = 3.6 * len(short) + 8
        x = float(np.clip(at[row, 0], half + 4, WIDTH - half - 4))
        y = max(float(at[row, 1]) - 9, 14.0)
        while any(abs(x - other) < half + wide and abs(y - line) < 14 for other, line, wide in taken):
            y += 14
        taken.append((x, y, half))
        made.append(Name(short, x, y, row % COLOURS))
    return made
