"""A comparison as a bar chart: a panel for each data set, a bar for each method."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from pren.evaluation import MAIN_FIGURE, TITLES
from pren.foundation.extras import need
from pren.foundation.files import write_bytes
from pren.problem import Setting
from pren.research.summary import Row
from pren.research.tables import percent_spread

BAR, BEST, LINE = "#b9cfe0", "#4a8ab8", "#222222"
PANEL = 4.2  # inches across, without the names of the methods


def write_chart(rows: Sequence[Row], setting: Setting, folder: Path) -> None:
    """Write chart.png and chart.svg."""
    matplotlib = need("matplotlib", "research")
    figure = _draw(rows, setting)
    # Without random ids and dates, the same figures give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "pren"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the font may lack characters of a name
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            content = io.BytesIO()
            figure.savefig(content, format=kind, dpi=150, metadata=metadata)
            write_bytes(folder / f"chart.{kind}", content.getvalue())


def _draw(rows: Sequence[Row], setting: Setting) -> Any:
    """Draw without pyplot, which keeps a global list of figures."""
    panels = [(data, list(group)) for data, group in groupby(rows, key=lambda row: row.data)]
    tallest = max(len(group) for _, group in panels)
    names = max(len(row.method) for row in rows)
    size = (0.09 * min(names, 40) + PANEL * len(panels), 1.1 + 0.36 * tallest)
    figure = need("matplotlib.figure", "research").Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for place, (ax, (data, group)) in enumerate(zip(axes, panels, strict=True)):
        _panel(ax, group, MAIN_FIGURE[setting])
        ax.set_title(_short(data), parse_math=False, fontsize=11, loc="left")
        ax.set_xlabel(f"{TITLES[MAIN_FIGURE[setting]]}, per cent ({setting})")
        if place == 0:
            ax.set_yticks(range(len(group)), [_short(row.method) for row in group], parse_math=False)
    return figure


def _panel(ax: Any, rows: Sequence[Row], name: str) -> None:
    spreads = [row.figures[name] for row in rows]
    best = max((spread.mean for spread in spreads if spread is not None), default=0.0)
    end = max((100 * (s.mean + (s.std or 0)) for s in spreads if s is not None), default=100.0)
    for place, spread in enumerate(spreads):
        if spread is None:
            reason = "failed" if rows[place].runs else "not computed"
            ax.text(0.01 * end, place, reason, va="center", color=LINE, fontstyle="italic")
            continue
        error = None if spread.std is None else 100 * spread.std
        colour = BEST if spread.mean == best else BAR
        ax.barh(place, 100 * spread.mean, height=0.7, color=colour, xerr=error, ecolor=LINE, capsize=3)
        ax.text(100 * spread.mean + (error or 0) + 0.02 * end, place, percent_spread(spread), va="center", fontsize=9)
    ax.set_xlim(0, 1.3 * end or 1.0)
    ax.set_ylim(len(rows) - 0.5, -0.5)  # from the top down, with room for methods without a bar
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _short(text: str) -> str:
    """One line that leaves room for the bars."""
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:39]}…"
