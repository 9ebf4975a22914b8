"""Line charts as inline SVG: colours come from the page's style, so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pren.report.html import Html, join, number, tag

WIDTH, HEIGHT = 440.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 12.0, 10.0, 38.0
COLOURS = 10  # how many the style has: c0, c1, ...


@dataclass(frozen=True)
class Series:
    """A line, its points from left to right; dashed for what is only expected, or dots alone."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False
    dots: bool = False


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
    *,
    x: str,
    show_x: Callable[[float], str] = number,
    show_y: Callable[[float], str] = number,
    bounds: tuple[float, float] | None = None,
    whole: bool = False,
) -> Html:
    """A figure with one or more lines.

    Args:
        title: What it shows.
        series: At least one point in all.
        x: What goes to the right.
        show_x: How numbers below the chart are written.
        show_y: How those on its left are.
        bounds: The range of y; None for that of the points.
        whole: Whether x counts something.
    """
    across = [point[0] for line in series for point in line.points]
    up = [point[1] for line in series for point in line.points]
    low, high = bounds or _room(min(up), max(up))
    first, last = min(across), max(across)
    last = last if last > first else first + 1

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return (
            LEFT + (point[0] - first) / (last - first) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (point[1] - low) / (high - low) * (HEIGHT - TOP - BOTTOM),
        )

    parts: list[Html] = []
    for value in ticks(low, high, 4):
        _, place = at((first, value))
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=place, y2=place, class_="grid"))
        parts.append(tag("text", show_y(value), x=LEFT - 6, y=place + 4, text_anchor="end"))
    for value in ticks(first, last, 5, whole=whole):
        place, _ = at((value, low))
        parts.append(tag("text", show_x(value), x=place, y=HEIGHT - BOTTOM + 16, text_anchor="middle"))
    parts.append(tag("text", x, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 4, text_anchor="middle", class_="axis"))
    for place, line in enumerate(series):
        parts.append(_drawn([at(point) for point in line.points], f"c{place}", line))
    label = _said(title, series, show_y)
    drawing = tag("svg", parts, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=label)
    legend = _legend(series)
    caption = tag("figcaption", tag("strong", title), legend if len(series) > 1 else None)
    return tag("figure", caption, drawing, class_="chart")


def _room(low: float, high: float) -> tuple[float, float]:
    """A range with some air; a line that is level needs some, too."""
    margin = 0.06 * (high - low) or abs(high) or 1.0
    return (0.0 if 0 <= low < 0.5 * high else low - margin), high + margin


def _drawn(points: Sequence[tuple[float, float]], colour: str, line: Series) -> Html:
    if line.dots or len(points) == 1:
        return join(tag("circle", cx=x, cy=y, r=3.0, class_=f"dot {colour}") for x, y in points)
    path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return tag("polyline", points=path, class_=f"line {colour}{' dashed' if line.dashed else ''}")


def _legend(series: Sequence[Series]) -> Html:
    """What the colours mean."""
    items = []
    for place, line in enumerate(series):
        ends = [(10.0, 5.0)] if line.dots else [(0.0, 5.0), (20.0, 5.0)]
        sample = _drawn(ends, f"c{place}", line)
        items.append(tag("li", tag("svg", sample, viewBox="0 0 20 10", aria_hidden="true", class_="swatch"), line.name))
    return tag("ul", items, class_="legend")


def _said(title: str, series: Sequence[Series], show: Callable[[float], str]) -> str:
    """A chart for those who do not see it."""
    ends = [f"{s.name}: {show(s.points[0][1])} at first, {show(s.points[-1][1])} at last" for s in series if s.points]
    return f"{title}. {'; '.join(ends)}."


def bar(share: float) -> Html:
    """A share as a small bar, for tables."""
    return tag(
        "svg",
        tag("rect", width=60, height=8, rx=4, class_="track"),
        tag("rect", width=60 * min(max(share, 0.0), 1.0), height=8, rx=4, class_="fill"),
        viewBox="0 0 60 8",
        class_="bar",
        aria_hidden="true",
    )


def spread_bar(mean: float, std: float | None, values: Sequence[float], end: float) -> Html:
    """A mean as a bar with its standard deviation and the single values, for tables; `end` is the largest of all."""
    scale = 196 / (end or 1.0)
    parts = [tag("rect", y=3, width=mean * scale, height=14, rx=2, class_="mid")]
    if std is not None:
        low, high = max(mean - std, 0.0) * scale, (mean + std) * scale
        shape = f"M{number(low)} 10H{number(high)}M{number(low)} 6v8M{number(high)} 6v8"
        parts.append(tag("path", d=shape, class_="whisker"))
        parts += [tag("circle", cx=value * scale, cy=10, r=2.2, class_="seed") for value in values]
    return tag("svg", parts, viewBox="0 0 200 20", class_="spread", aria_hidden="true")
