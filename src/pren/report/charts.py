"""The layout of charts; `charts.html.jinja` draws them in the colours of the page (light and dark)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pren.report.words import number

WIDTH, HEIGHT = 440.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 12.0, 10.0, 38.0
COLOURS = 10  # of the style: c0, c1, ...

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Series:
    """A line from left to right; dashed for expected values, or only dots."""

    name: str
    points: Points
    dashed: bool = False
    dots: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart in the units of its drawing.

    Attributes:
        title: The title.
        said: The same for a screen reader.
        axis: The name of the x axis.
        across: Places and texts of numbers below the chart.
        up: Places and texts of numbers on its left.
        lines: The series with their points in the drawing.
    """

    title: str
    said: str
    axis: str
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    lines: list[Series]

    width, height, left, right, bottom = WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM


def ticks(low: float, high: float, most: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers from low to high, at most `most` + 1."""
    raw = (high - low) / most or 1.0
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    step = max(round(step), 1) if whole else step
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def line_chart(
    title: str,
    series: Sequence[Series],
    axis: str,
    *,
    show_x: Callable[[float], str] = number,
    show_y: Callable[[float], str] = number,
    bounds: tuple[float, float] | None = None,
    whole: bool = False,
) -> Chart:
    """Lay out a chart with one or more lines.

    Args:
        title: The title.
        series: Lines, with at least one point in all.
        axis: The name of the x axis.
        show_x: Formats numbers below the chart.
        show_y: Formats numbers on its left.
        bounds: The range of y; None for that of the points.
        whole: Whether x is a whole number.
    """
    xs, ys = [x for line in series for x, _ in line.points], [y for line in series for _, y in line.points]
    low, high = bounds or _room(min(ys), max(ys))
    first, last = min(xs), max(xs)
    last = last if last > first else first + 1

    def right(x: float) -> float:
        return LEFT + (x - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def down(y: float) -> float:
        return HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    ends = [f"{s.name}: {show_y(s.points[0][1])} first, {show_y(s.points[-1][1])} last" for s in series if s.points]
    return Chart(
        title,
        f"{title}. {'; '.join(ends)}.",
        axis,
        [(right(x), show_x(x)) for x in ticks(first, last, 5, whole=whole)],
        [(down(y), show_y(y)) for y in ticks(low, high, 4)],
        [Series(s.name, [(right(x), down(y)) for x, y in s.points], s.dashed, s.dots) for s in series],
    )


def _room(low: float, high: float) -> tuple[float, float]:
    """A range with a margin, also for a level line."""
    margin = 0.06 * (high - low) or abs(high) or 1.0
    return (0.0 if 0 <= low < 0.5 * high else low - margin), high + margin
