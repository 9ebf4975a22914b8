"""The paper's figure: how h, the length of label embeddings, and K, the number of heads, matter."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from pren.experiments.cells import Task
from pren.experiments.extras import need
from pren.experiments.reproduction.paper import DIMENSIONS, HEADS, Column
from pren.experiments.reproduction.plan import EMBEDDED, Plan, Wanted, Wishes, title_of, wish
from pren.experiments.reproduction.sheets import Sheet
from pren.experiments.reproduction.tables import QUICK_NOTE, Results, shown
from pren.experiments.summary import Spread
from pren.files import write_bytes

BENCHMARK: Column = ("cub", "PS")
AXES = (("dim", "h (length of label embeddings)"), ("heads", "K (heads)"))
LINE = "#4a8ab8"
QUICK_HEADS = 20


def sensitivity_wishes(plan: Plan) -> Wishes:
    """PrEN with every h at K = 50, and every K at h = 70; on the embedded data h is as large as they allow."""
    wishes = Wishes()
    for column, longest in ((BENCHMARK, 70), (EMBEDDED, 19)):
        dims = [h for h in DIMENSIONS if h <= longest] or list(DIMENSIONS[:1])
        most = QUICK_HEADS if plan.quick else 50
        points = [{"dim": h, "heads": most} for h in dims]
        points += [{"dim": dims[-1], "heads": K} for K in HEADS if (most if plan.quick else HEADS[-1]) >= K]
        found = wish(plan, [column], ["pren"], settings=points)
        wishes.cells += found.cells
        wishes.missing |= found.missing
    return wishes


def value(wanted: Wanted, name: str) -> int:
    """A parameter of the cells at one point."""
    task: Task = wanted.tasks[0]
    return int(task.cell.params[name])


def curve(wishes: Wishes, column: Column, axis: str) -> list[Wanted]:
    """The points of one panel, rising: those at which the other parameter is as large as it gets along this axis."""
    points = [wanted for wanted in wishes.cells if wanted.column == column]
    other = "heads" if axis == "dim" else "dim"
    counts: dict[int, int] = {}
    for wanted in points:
        counts[value(wanted, other)] = counts.get(value(wanted, other), 0) + 1
    fixed = max(counts, key=lambda at: (counts[at], at)) if counts else 0
    mine = {value(wanted, axis): wanted for wanted in points if value(wanted, other) == fixed}
    return [mine[at] for at in sorted(mine)]


def sensitivity(plan: Plan, wishes: Wishes, results: Results) -> list[Sheet]:
    """A table for each panel."""
    sheets = []
    for axis, title in AXES:
        rows = []
        for column in (BENCHMARK, EMBEDDED):
            rows += [
                [title_of(column), str(value(wanted, axis)), shown(wanted, results, "top1")]
                for wanted in curve(wishes, column, axis)
            ]
        notes = [QUICK_NOTE.replace("10 heads", f"{QUICK_HEADS} heads")] if plan.quick else []
        notes += [f"{title_of(column)} is missing: {why}" for column, why in wishes.missing.items()]
        name = f"sensitivity-{axis}"
        sheets.append(Sheet(name, f"Figure: PrEN over {title}", ["data", title, "Top-1, here"], rows, notes))
    return sheets


def draw(wishes: Wishes, results: Results, folder: Path, quick: bool) -> None:
    """Both panels as sensitivity.png and .svg."""
    matplotlib = need("matplotlib", "compare")
    figure = need("matplotlib.figure", "compare").Figure(figsize=(8.4, 3.4), layout="constrained")
    for ax, (axis, title) in zip(figure.subplots(1, 2, sharey=True), AXES, strict=True):
        for column, style in ((BENCHMARK, "-"), (EMBEDDED, "--")):
            _line(ax, [(value(w, axis), _spread(w, results)) for w in curve(wishes, column, axis)], column, style)
        ax.set_xlabel(title)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.3)
        ax.legend(frameon=False)
    figure.axes[0].set_ylabel("Top-1, per cent" + (" (QUICK)" if quick else ""))
    with matplotlib.rc_context({"svg.hashsalt": "pren"}):
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            content = io.BytesIO()
            figure.savefig(content, format=kind, dpi=150, metadata=metadata)
            write_bytes(folder / f"sensitivity.{kind}", content.getvalue())


def _spread(wanted: Wanted, results: Results) -> Spread | None:
    done = [results[task.cell.key()] for task in wanted.tasks if task.cell.key() in results]
    return Spread.of([result.figures.get("top1") for result in done])


def _line(ax: Any, points: list[tuple[int, Spread | None]], column: Column, style: str) -> None:
    known = [(at, spread) for at, spread in points if spread is not None]
    ax.errorbar(
        [at for at, _ in known],
        [100 * spread.mean for _, spread in known],
        yerr=[100 * (spread.std or 0) for _, spread in known],
        linestyle=style,
        marker="o",
        capsize=3,
        color=LINE,
        label=title_of(column),
    )
