"""The paper's Tables 1, 2 and 3, beside the figures here."""

from __future__ import annotations

from collections.abc import Sequence

from pren.data.survey import survey
from pren.methods.registry import METHODS
from pren.research.reproduction import paper
from pren.research.reproduction.paper import COLUMNS, Column
from pren.research.reproduction.plan import EMBEDDED, Plan, Results, Wanted, WantedCells, title_of, wish
from pren.research.reproduction.sheets import HERE, PAPER, Sheet
from pren.research.tables import percent_spread

NONE = "–"
QUICK_NOTE = "QUICK: 10 heads and 3 rounds instead of the paper's 50 and 20, and one seed. Not a reproduction."
MISSING = "missing"


def datasets(plan: Plan) -> Sheet:
    """Table 1: how large the data are, in the paper and in the files."""
    header = ["data", *(f"{name}, {who}" for name in paper.Counts._fields for who in ("paper", "files"))]
    rows, notes = [], []
    for name, printed in paper.DATASETS.items():
        found = survey(name, plan.root)
        split = next((s for s in found.splits if s.split in ("PS", "SUN10")), None)
        shape = next(iter(found.signatures.values()), None)
        images = next((shape[1] for shape in found.features.values()), None)
        if images is None and found.images is not None:
            images = found.images.listed
        seen, unseen = (None, None) if split is None else (split.seen, split.unseen)
        measured = [images, shape and shape[0], shape and shape[1], seen, unseen]
        cells = [str(NONE if cell is None else cell) for pair in zip(printed, measured, strict=True) for cell in pair]
        rows.append([title_of((name, "")), *cells])
        if found.missing:
            notes.append(f"{title_of((name, ''))}: {' '.join(found.missing)} {found.published}".strip())
    return Sheet(name="datasets", title="Table 1: data", header=header, rows=rows, notes=notes)


def zsl_cells(plan: Plan) -> WantedCells:
    """The cells of Table 2."""
    methods = [name for name in METHODS if name in {**paper.TOP1, **paper.MACC}]
    return wish(plan, [*COLUMNS, EMBEDDED], methods)


def zsl(plan: Plan, asked: WantedCells, results: Results) -> list[Sheet]:
    """Table 2: Top-1, and mAcc."""
    sheets = []
    for figure, title, printed in (("top1", "Top-1", paper.TOP1), ("macc", "mAcc", paper.MACC)):
        rows = []
        for name in dict.fromkeys(wanted.method for wanted in asked.cells):
            cells = [METHODS[name].title]
            for column in (*COLUMNS, EMBEDDED):
                known = printed.get(name, {}).get(column)
                if column != EMBEDDED:
                    cells.append(NONE if known is None else f"{known:.1f}")
                cells.append(measured(asked, results, name, column, figure))
            rows.append(cells)
        pairs = [[f"{title_of(c)}{PAPER}", f"{title_of(c)}{HERE}"] for c in COLUMNS]
        header = ["method", *(name for pair in pairs for name in pair), f"{title_of(EMBEDDED)}{HERE}"]
        said = f"Table 2: {title}, conventional ZSL (per cent)"
        notes = _notes(plan, asked)
        sheets.append(Sheet(name=f"zsl-{figure}", title=said, header=header, rows=rows, notes=notes))
    return sheets


def gzsl_cells(plan: Plan) -> WantedCells:
    """The cells of Table 3."""
    return wish(plan, [*_gzsl_columns(), EMBEDDED], list(paper.GZSL), "gzsl")


def gzsl(plan: Plan, asked: WantedCells, results: Results) -> Sheet:
    """Table 3: u, s and H."""
    columns = [*_gzsl_columns(), EMBEDDED]
    header = ["method"]
    for column in columns:
        header += [
            f"{title_of(column)} {figure}{who}"
            for figure in ("u", "s", "H")
            for who in ((PAPER, HERE) if column != EMBEDDED else (HERE,))
        ]
    figures = ("u_images", "s_images", "h_images") if plan.paper_protocol else ("u", "s", "h")
    rows = []
    for name, printed in paper.GZSL.items():
        cells = [METHODS[name].title]
        for place, column in enumerate(columns):
            for which, figure in enumerate(figures):
                cells += [f"{printed[place][which]:.1f}"] if column != EMBEDDED else []
                cells.append(measured(asked, results, name, column, figure))
        rows.append(cells)
    protocol = (
        "The paper's protocol: a random fifth of each seen class is tested; shares of images; the last round."
        if plan.paper_protocol
        else "The seen images in the split's list are tested. Accuracy within each class, averaged; the last round. "
        "(--paper-protocol: a random fifth, and shares of images.)"
    )
    name = "gzsl-paper-protocol" if plan.paper_protocol else "gzsl"
    title = "Table 3: generalised ZSL (per cent)"
    return Sheet(name=name, title=title, header=header, rows=rows, notes=[protocol, *_notes(plan, asked)])


def measured(asked: WantedCells, results: Results, method: str, column: Column, figure: str) -> str:
    """An entry of a table: mean and standard deviation over seeds, or why there is none."""
    wanted = asked.of(method, column)
    if wanted is None:
        return MISSING if column in asked.missing else NONE
    return shown(wanted, results, figure)


def shown(wanted: Wanted, results: Results, figure: str) -> str:
    """The mean over the computed seeds, and how many these are if not all."""
    done = wanted.done(results)
    if not done:
        return "not computed"
    spread = wanted.figure(results, figure)
    if spread is None:
        return "failed" if any(result.error is not None for result in done) else NONE
    fewer = f" ({len(done)})" if len(done) < len(wanted.tasks) else ""
    return f"{percent_spread(spread)}{fewer}"


def counted(seeds: int) -> str:
    """Such as "3 seeds"."""
    return "1 seed" if seeds == 1 else f"{seeds} seeds"


def _gzsl_columns() -> Sequence[Column]:
    return [(name, "PS") for name in paper.GZSL_DATA]


def _notes(plan: Plan, asked: WantedCells) -> list[str]:
    notes = [QUICK_NOTE] if plan.quick else []
    given = "tuned or given parameters" if plan.parameters else "default parameters"
    seeds = counted(plan.seeds) + (" (in brackets: how many, if fewer)" if plan.seeds > 1 else "")
    notes.append(f"Rivals with {given}. {seeds}; methods without randomness run once.")
    return [*notes, *asked.notes()]
