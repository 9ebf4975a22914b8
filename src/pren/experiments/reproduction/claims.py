"""The paper's claims, one by one, and what the cells at hand say about each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pren.experiments.cells import Task
from pren.experiments.reproduction.paper import GZSL, Column
from pren.experiments.reproduction.plan import EMBEDDED, Plan, Wishes, title_of
from pren.experiments.reproduction.sensitivity import AXES, BENCHMARK, curve, value
from pren.experiments.reproduction.sheets import Sheet
from pren.experiments.reproduction.tables import QUICK_NOTE, Results
from pren.methods.registry import METHODS

Verdict = Literal["holds", "holds in part", "does not hold here", "cannot be tested here"]
INDUCTIVE = ("devise", "sync", "ale", "sje", "sae-f2s")


@dataclass(frozen=True)
class Evidence:
    """Figures of all three parts, by setting, method and column."""

    zsl: Wishes
    gzsl: Wishes
    sensitivity: Wishes
    results: Results

    def figure(self, setting: str, method: str, column: Column, name: str) -> float | None:
        """The mean over seeds; None if nothing is known."""
        wishes = self.zsl if setting == "zsl" else self.gzsl
        for wanted in wishes.cells:
            if (wanted.method, wanted.column) == (method, column):
                done = [self.results[t.cell.key()] for t in wanted.tasks if t.cell.key() in self.results]
                known = [figure for r in done if (figure := r.figures.get(name)) is not None]
                return sum(known) / len(known) if known else None
        return None

    def columns(self, setting: str) -> list[Column]:
        """Those with data."""
        wishes = self.zsl if setting == "zsl" else self.gzsl
        return list(dict.fromkeys(wanted.column for wanted in wishes.cells))


Finding = tuple[bool, str]  # whether it is as claimed, and the figures


def claims(plan: Plan, evidence: Evidence) -> Sheet:
    """One row for each claim."""
    rows = []
    for claim, look in CLAIMS:
        findings = list(look(evidence))
        rows.append([claim, _verdict(findings), "; ".join(figures for _, figures in findings) or "no data for it"])
    notes = [QUICK_NOTE] if plan.quick else []
    notes.append(f"{title_of(EMBEDDED)} is not in the paper: it shows what anybody can rerun.")
    return Sheet("claims", "The paper's claims", ["claim", "verdict", "figures, here"], rows, notes)


def _verdict(findings: list[Finding]) -> Verdict:
    if not findings:
        return "cannot be tested here"
    right = sum(holds for holds, _ in findings)
    return "holds" if right == len(findings) else "holds in part" if right else "does not hold here"


def _order(evidence: Evidence) -> Iterator[Finding]:
    names = ("pren", "pren-no-projection", "progressive")
    for column in evidence.columns("zsl"):
        figures = [evidence.figure("zsl", name, column, "top1") for name in names]
        known = [figure for figure in figures if figure is not None]
        if len(known) == len(names):
            yield known == sorted(known, reverse=True), f"{title_of(column)}: {_shown(known, ' / ')}"


def _above_inductive(evidence: Evidence) -> Iterator[Finding]:
    for column in evidence.columns("zsl"):
        yield from _against(evidence, "zsl", "top1", column)


def _generalised(name: str) -> Callable[[Evidence], Iterator[Finding]]:
    def look(evidence: Evidence) -> Iterator[Finding]:
        for column in evidence.columns("gzsl"):
            yield from _against(evidence, "gzsl", name, column)

    return look


def _against(evidence: Evidence, setting: str, name: str, column: Column) -> Iterator[Finding]:
    """PrEN against the best of the inductive rivals that there are."""
    ours = evidence.figure(setting, "pren", column, name)
    rivals = {rival: evidence.figure(setting, rival, column, name) for rival in INDUCTIVE}
    known = {rival: figure for rival, figure in rivals.items() if figure is not None}
    if ours is not None and known:
        best = max(known, key=known.__getitem__)
        figures = f"{_shown([ours])} against {_shown([known[best]])} ({METHODS[best].title})"
        yield ours > known[best], f"{title_of(column)}: {figures}"


def _harder_split(evidence: Evidence) -> Iterator[Finding]:
    for name in ("cub", "awa2", "sun"):
        ss, ps = (evidence.figure("zsl", "pren", (name, split), "top1") for split in ("SS", "PS"))
        if ss is not None and ps is not None:
            yield ps < ss, f"{title_of((name, ''))}: SS {_shown([ss])}, PS {_shown([ps])}"


def _flat(axis: str, smallest: int, safe: int) -> Callable[[Evidence], Iterator[Finding]]:
    """A curve that rises from its smallest value to a safe one, and is flat (two points) from there."""

    def look(evidence: Evidence) -> Iterator[Finding]:
        points = {
            value(wanted, axis): known
            for wanted in curve(evidence.sensitivity, BENCHMARK, axis)
            if (known := _mean(evidence, wanted.tasks)) is not None
        }
        later = [figure for at, figure in points.items() if at >= safe]
        if smallest in points and len(later) > 1:
            flat = max(later) - min(later) <= 0.02
            figures = ", ".join(f"{at}: {_shown([figure])}" for at, figure in sorted(points.items()))
            yield flat and points[smallest] < min(later), f"{dict(AXES)[axis]} {figures}"

    return look


def _mean(evidence: Evidence, tasks: list[Task]) -> float | None:
    done = [evidence.results[task.cell.key()] for task in tasks if task.cell.key() in evidence.results]
    known = [figure for result in done if (figure := result.figures.get("top1")) is not None]
    return sum(known) / len(known) if known else None


def _shown(figures: list[float], between: str = ", ") -> str:
    return between.join(f"{100 * figure:.1f}" for figure in figures)


CLAIMS: tuple[tuple[str, Callable[[Evidence], Iterator[Finding]]], ...] = (
    ("PrEN is above PrEN w/o Proj, and that above Progressive Training (Top-1)", _order),
    ("PrEN is above the inductive rivals (Top-1)", _above_inductive),
    ("On the proposed split PrEN is below the standard split", _harder_split),
    ("GZSL: u of PrEN is above that of the inductive rivals", _generalised("u")),
    ("GZSL: H of PrEN is above that of the inductive rivals", _generalised("h")),
    ("h is safe from 30 to 70, and 10 is far below", _flat("dim", 10, 30)),
    ("K is safe above 30, and 10 is far below", _flat("heads", 10, 30)),
)
assert set(INDUCTIVE) <= set(GZSL)
