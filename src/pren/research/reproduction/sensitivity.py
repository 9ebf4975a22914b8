"""The paper's figure: the effect of h, the length of label embeddings, and of K, the number of heads."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from pren.core.projection import DEFAULT_DIM
from pren.foundation.extras import need
from pren.foundation.files import write_bytes
from pren.research.reproduction.paper import DIMENSIONS, HEADS, Column
from pren.research.reproduction.plan import EMBEDDED, Plan, Results, Wanted, WantedCells, title_of, wish
from pren.research.reproduction.sheets import HERE, Curve, Sheet
from pren.research.reproduction.tables import QUICK_NOTE, counted, shown

BENCHMARK: Column = ("cub", "PS")
AXES = (("dim", "h (length of label embeddings)"), ("heads", "K (heads)"))
PAPER_SAYS = {
    "dim": "The paper's curve (CUB PS, printed as a figure only): rises fast from 10 to 30, then flat to 70.",
    "heads": "The paper's curve (CUB PS, printed as a figure only): very poor at 10, rises to 30, then flat to 60.",
}
SHARED = "In brackets: how many seeds, if fewer. The figure shows means over the seeds that all points of a curve have."
LINE = "#4a8ab8"
QUICK_HEADS = 20
EMBEDDED_DIMENSIONS = (5, 10, 15, 19)


def sensitivity_cells(plan: Plan) -> WantedCells:
    """PrEN with every h at K = 50, and every K at h = 70 (or the largest h that the data allow)."""
    asked = WantedCells()
    most = QUICK_HEADS if plan.quick else 50
    heads = [K for K in HEADS if most >= K or not plan.quick]
    for column, dims in ((BENCHMARK, DIMENSIONS), (EMBEDDED, EMBEDDED_DIMENSIONS)):
        # With the default h named, it would be another cell.
        points = [{"dim": h, "heads": most} for h in dims if h != DEFAULT_DIM] + [{"heads": K} for K in heads]
        found = wish(plan, [column], ["pren"], settings=points)
        asked.cells += found.cells
        asked.missing |= found.missing
    return asked


def value(wanted: Wanted, name: str) -> int:
    """A parameter of the cells at one point."""
    given = wanted.tasks[0].cell.params[name]
    return DEFAULT_DIM if given is None else int(given)


def curve(asked: WantedCells, column: Column, axis: str) -> list[Wanted]:
    """The points of one panel, rising: those with the other parameter at its most frequent value."""
    points = [wanted for wanted in asked.cells if wanted.column == column]
    other = "heads" if axis == "dim" else "dim"
    counts: dict[int, int] = {}
    for wanted in points:
        counts[value(wanted, other)] = counts.get(value(wanted, other), 0) + 1
    fixed = max(counts, key=lambda at: (counts[at], at)) if counts else 0
    mine = {value(wanted, axis): wanted for wanted in points if value(wanted, other) == fixed}
    return [mine[at] for at in sorted(mine)]


def shared_points(asked: WantedCells, results: Results, column: Column, axis: str) -> tuple[dict[int, float], int]:
    """The means of a curve over the seeds that all its computed points have, and how many seeds these are.

    With different seeds, points would differ by chance.
    """
    known = {value(wanted, axis): wanted.by_seed(results, "top1") for wanted in curve(asked, column, axis)}
    known = {at: figures for at, figures in known.items() if figures}
    shared = set.intersection(*map(set, known.values())) if known else set()
    return {at: fmean(figures[seed] for seed in shared) for at, figures in known.items() if shared}, len(shared)


def sensitivity(plan: Plan, asked: WantedCells, results: Results) -> list[Sheet]:
    """A table for each panel."""
    sheets = []
    for axis, title in AXES:
        rows, curves = [], []
        for column in (BENCHMARK, EMBEDDED):
            points = curve(asked, column, axis)
            rows += [[title_of(column), str(value(w, axis)), shown(w, results, "top1")] for w in points]
            known, seeds = shared_points(asked, results, column, axis)
            curves.append(Curve(title=f"{title_of(column)} ({counted(seeds)})", points=list(known.items())))
        notes = [QUICK_NOTE.replace("10 heads", f"{QUICK_HEADS} heads")] if plan.quick else []
        notes += [PAPER_SAYS[axis], SHARED, *asked.notes()]
        sheets.append(
            Sheet(
                name=f"sensitivity-{axis}",
                title=f"Figure: PrEN over {title}",
                header=["data", title, f"Top-1{HERE}"],
                rows=rows,
                notes=notes,
                axis=title,
                curves=[line for line in curves if line.points],
            )
        )
    return sheets


def draw(sheets: Sequence[Sheet], folder: Path, quick: bool) -> None:
    """Both panels as sensitivity.png and .svg."""
    matplotlib = need("matplotlib", "research")
    figure = need("matplotlib.figure", "research").Figure(figsize=(8.4, 3.4), layout="constrained")
    for ax, sheet in zip(figure.subplots(1, 2, sharey=True), sheets, strict=True):
        for line, style in zip(sheet.curves, ("-", "--"), strict=False):
            x, y = zip(*line.points, strict=True)
            ax.plot(x, [100 * share for share in y], linestyle=style, marker="o", color=LINE, label=line.title)
        ax.set_xlabel(sheet.axis)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.3)
        if sheet.curves:
            ax.legend(frameon=False)
    figure.axes[0].set_ylabel("Top-1, per cent" + (" (QUICK)" if quick else ""))
    with matplotlib.rc_context({"svg.hashsalt": "pren"}):
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            content = io.BytesIO()
            figure.savefig(content, format=kind, dpi=150, metadata=metadata)
            write_bytes(folder / f"sensitivity.{kind}", content.getvalue())
