"""The paper's Tables 1, 2 and 3, with what comes out here beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pren.data import survey
from pren.experiments.cells import Result
from pren.experiments.reproduction import paper
from pren.experiments.reproduction.paper import COLUMNS, Column
from pren.experiments.reproduction.plan import EMBEDDED, Plan, Wanted, Wishes, title_of, wish
from pren.experiments.reproduction.sheets import Sheet
from pren.experiments.summary import Spread
from pren.experiments.tables import percent_spread
from pren.methods.registry import METHODS

NONE = "–"
QUICK_NOTE = "QUICK: 10 heads and 3 rounds instead of the paper's 50 and 20, and one seed. Not a reproduction."
Results = Mapping[str, Result]


def datasets(plan: Plan) -> Sheet:
    """Table 1: how large the data are, by the files at hand."""
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
    return Sheet("datasets", "Table 1: data", header, rows, notes)


def zsl_wishes(plan: Plan) -> Wishes:
    """The cells of Table 2."""
    methods = [name for name in METHODS if name in {**paper.TOP1, **paper.MACC}]
    return wish(plan, [*COLUMNS, EMBEDDED], methods)


def zsl(plan: Plan, wishes: Wishes, results: Results) -> list[Sheet]:
    """Table 2: Top-1, and mAcc."""
    sheets = []
    for figure, title, printed in (("top1", "Top-1", paper.TOP1), ("macc", "mAcc", paper.MACC)):
        rows = []
        for name in dict.fromkeys(wanted.method for wanted in wishes.cells):
            cells = [METHODS[name].title]
            for column in (*COLUMNS, EMBEDDED):
                known = printed.get(name, {}).get(column)
                if column != EMBEDDED:
                    cells.append(NONE if known is None else f"{known:.1f}")
                cells.append(measured(wishes, results, name, column, figure))
            rows.append(cells)
        pairs = [[f"{title_of(c)}, paper", f"{title_of(c)}, here"] for c in COLUMNS]
        header = ["method", *(name for pair in pairs for name in pair), f"{title_of(EMBEDDED)}, here"]
        said = f"Table 2: {title}, conventional ZSL (per cent)"
        sheets.append(Sheet(f"zsl-{figure}", said, header, rows, _notes(plan, wishes)))
    return sheets


def gzsl_wishes(plan: Plan) -> Wishes:
    """The cells of Table 3."""
    return wish(plan, [*_gzsl_columns(), EMBEDDED], list(paper.GZSL), "gzsl")


def gzsl(plan: Plan, wishes: Wishes, results: Results) -> Sheet:
    """Table 3: u, s and H."""
    header = ["method"]
    for column in (*_gzsl_columns(), EMBEDDED):
        for who in ("paper", "here") if column != EMBEDDED else ("here",):
            header += [f"{title_of(column)} {figure}, {who}" for figure in ("u", "s", "H")]
    rows = []
    for name, printed in paper.GZSL.items():
        cells = [METHODS[name].title]
        for place, column in enumerate((*_gzsl_columns(), EMBEDDED)):
            if column != EMBEDDED:
                cells += [f"{figure:.1f}" for figure in printed[place]]
            cells += [measured(wishes, results, name, column, figure) for figure in ("u", "s", "h")]
        rows.append(cells)
    held_out = "a random fifth of each seen class" if plan.paper_protocol else "the list that comes with the split"
    notes = [f"Seen images that are tested: {held_out}. Accuracy within each class, averaged; last round; γ as given."]
    return Sheet("gzsl", "Table 3: generalised ZSL (per cent)", header, rows, [*notes, *_notes(plan, wishes)])


def measured(wishes: Wishes, results: Results, method: str, column: Column, figure: str) -> str:
    """A cell of a table: mean and standard deviation over seeds, or why there is none."""
    for wanted in wishes.cells:
        if (wanted.method, wanted.column) == (method, column):
            return shown(wanted, results, figure)
    return "missing" if column in wishes.missing else NONE


def shown(wanted: Wanted, results: Results, figure: str) -> str:
    """The mean over the seeds that have been computed."""
    done = [results[task.cell.key()] for task in wanted.tasks if task.cell.key() in results]
    if not done:
        return "not computed"
    spread = Spread.of([result.figures.get(figure) for result in done if result.error is None])
    return "failed" if spread is None else percent_spread(spread)


def _gzsl_columns() -> Sequence[Column]:
    return [(name, "PS") for name in paper.GZSL_DATA]


def _notes(plan: Plan, wishes: Wishes) -> list[str]:
    notes = [QUICK_NOTE] if plan.quick else []
    given = "tuned or given" if plan.parameters.everywhere or plan.parameters.tuned else "default"
    notes.append(f"Rivals with {given} parameters. {plan.seeds} seeds; methods without randomness run once.")
    return [*notes, *(f"{title_of(column)} is missing: {why}" for column, why in wishes.missing.items())]
