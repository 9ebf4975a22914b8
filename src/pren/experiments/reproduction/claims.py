"""The paper's claims, one by one, and what the cells at hand say about each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from pren.experiments.reproduction.complexity import share_of_more_heads
from pren.experiments.reproduction.paper import Column
from pren.experiments.reproduction.plan import EMBEDDED, Plan, Results, Wishes, title_of
from pren.experiments.reproduction.sensitivity import BENCHMARK, curve, value
from pren.experiments.reproduction.sheets import HERE, Sheet
from pren.experiments.reproduction.tables import QUICK_NOTE
from pren.methods.registry import METHODS

Verdict = Literal["holds", "holds in part", "does not hold here", "cannot be tested here"]
INDUCTIVE = ("devise", "sync", "ale", "sje", "sae-f2s")
FLAT = 0.02  # a curve that stays within so much is flat


@dataclass(frozen=True)
class Evidence:
    """Figures of all parts."""

    zsl: Wishes
    gzsl: Wishes
    sensitivity: Wishes
    results: Results

    def figure(self, setting: str, method: str, column: Column, name: str) -> float | None:
        """The mean over seeds; None if nothing is known."""
        wanted = self._wishes(setting).of(method, column)
        spread = None if wanted is None else wanted.figure(self.results, name)
        return None if spread is None else spread.mean

    def columns(self, setting: str) -> list[Column]:
        """Those with data."""
        return list(dict.fromkeys(wanted.column for wanted in self._wishes(setting).cells))

    def _wishes(self, setting: str) -> Wishes:
        return self.zsl if setting == "zsl" else self.gzsl


Finding = tuple[bool, str]  # whether it is as claimed, and the figures
Look = Callable[[Evidence], Iterator[Finding]]


@dataclass(frozen=True)
class Claim:
    """What the paper says, which part of a reproduction looks at it, and how."""

    says: str
    part: str
    look: Look


def claims(plan: Plan, evidence: Evidence) -> Sheet:
    """One row for each claim."""
    rows = []
    for claim in CLAIMS:
        findings = list(claim.look(evidence))
        figures = "; ".join(figures for _, figures in findings) or "no data for it"
        rows.append([claim.says, _verdict(findings), figures, claim.part])
    notes = [QUICK_NOTE] if plan.quick else []
    notes += [
        f"{title_of(EMBEDDED)} is not in the paper: it shows what anybody can rerun. Means over seeds, the last round.",
        "Last column: the part of 'pren reproduce' that computes it.",
    ]
    header = ["the paper says", "verdict", f"figures{HERE}", "part"]
    return Sheet(name="claims", title="The paper's claims", header=header, rows=rows, notes=notes)


def _verdict(findings: list[Finding]) -> Verdict:
    if not findings:
        return "cannot be tested here"
    right = sum(holds for holds, _ in findings)
    return "holds" if right == len(findings) else "holds in part" if right else "does not hold here"


def _order(name: str) -> Look:
    """PrEN above PrEN w/o Proj above Progressive Training."""

    def look(evidence: Evidence) -> Iterator[Finding]:
        for column in evidence.columns("zsl"):
            figures = [
                evidence.figure("zsl", who, column, name) for who in ("pren", "pren-no-projection", "progressive")
            ]
            known = [figure for figure in figures if figure is not None]
            if len(known) == len(figures):
                yield known == sorted(known, reverse=True), f"{title_of(column)}: {_shown(known, ' / ')}"

    return look


def _gain(evidence: Evidence) -> Iterator[Finding]:
    """How far PrEN is above Progressive Training, over the paper's columns."""
    gains = []
    for column in evidence.columns("zsl"):
        ours, theirs = (evidence.figure("zsl", who, column, "top1") for who in ("pren", "progressive"))
        if column != EMBEDDED and ours is not None and theirs is not None:
            gains.append(ours - theirs)
    if gains:
        yield fmean(gains) >= 0.152, f"{_shown([fmean(gains)])} over {len(gains)} of the paper's 7 columns"


def _above_inductive(setting: str, name: str, above: bool = True) -> Look:
    """PrEN against the best of the inductive rivals that there are."""

    def look(evidence: Evidence) -> Iterator[Finding]:
        for column in evidence.columns(setting):
            ours = evidence.figure(setting, "pren", column, name)
            rivals = {rival: evidence.figure(setting, rival, column, name) for rival in INDUCTIVE}
            known = {rival: figure for rival, figure in rivals.items() if figure is not None}
            if ours is not None and known:
                best = max(known, key=known.__getitem__)
                figures = f"{_shown([ours])} against {_shown([known[best]])} ({METHODS[best].title})"
                yield (ours > known[best]) == above, f"{title_of(column)}: {figures}"

    return look


def _below(rival: str, columns: tuple[Column, ...]) -> Look:
    """PrEN is second to a rival."""

    def look(evidence: Evidence) -> Iterator[Finding]:
        for column in columns:
            ours, theirs = (evidence.figure("zsl", who, column, "top1") for who in ("pren", rival))
            if ours is not None and theirs is not None:
                figures = f"{_shown([ours])} against {_shown([theirs])} ({METHODS[rival].title})"
                yield ours < theirs, f"{title_of(column)}: {figures}"

    return look


def _harder_split(evidence: Evidence) -> Iterator[Finding]:
    for name in ("cub", "awa2", "sun"):
        ss, ps = (evidence.figure("zsl", "pren", (name, split), "top1") for split in ("SS", "PS"))
        if ss is not None and ps is not None:
            yield ps < ss, f"{title_of((name, ''))}: SS {_shown([ss])}, PS {_shown([ps])}"


def _flat(axis: str, smallest: int, safe: int) -> Look:
    """A curve that rises from its smallest value to a safe one, and is flat from there."""

    def look(evidence: Evidence) -> Iterator[Finding]:
        points = {}
        for wanted in curve(evidence.sensitivity, BENCHMARK, axis):
            spread = wanted.figure(evidence.results, "top1")
            if spread is not None:
                points[value(wanted, axis)] = spread.mean
        later = [figure for at, figure in points.items() if at >= safe]
        if smallest in points and len(later) > 1:
            figures = ", ".join(f"{at}: {_shown([figure])}" for at, figure in sorted(points.items()))
            rises = points[smallest] < min(later)
            yield rises, f"from {smallest} to {safe} it {'rises' if rises else 'does not rise'} ({figures})"
            width = max(later) - min(later)
            yield width <= FLAT, f"from {safe} on it stays within {_shown([width])} points"

    return look


def _cost(evidence: Evidence) -> Iterator[Finding]:
    share = share_of_more_heads()
    yield share <= 0.012, f"{100 * share:.2f} % (multiply-adds of the real modules)"


def _shown(figures: list[float], between: str = ", ") -> str:
    return between.join(f"{100 * figure:.1f}" for figure in figures)


CLAIMS = (
    Claim("PrEN is above PrEN w/o Proj, and that above Progressive Training (Top-1)", "zsl", _order("top1")),
    Claim("The same by mAcc", "zsl", _order("macc")),
    Claim("PrEN gains 16.9 on Progressive Training in the mean (its own table: 15.2)", "zsl", _gain),
    Claim("PrEN is above the five inductive rivals (Top-1)", "zsl", _above_inductive("zsl", "top1")),
    Claim("On PS, CUB and AWA2, PrEN is second to QFSL", "zsl", _below("qfsl", (("cub", "PS"), ("awa2", "PS")))),
    Claim("On SUN10 PrEN is second to GFZSL", "zsl", _below("gfzsl", (("sun10", "SUN10"),))),
    Claim("PrEN is lower on the proposed split than on the standard one", "zsl", _harder_split),
    Claim("GZSL: PrEN's u is above the five rivals'", "gzsl", _above_inductive("gzsl", "u")),
    Claim("GZSL: PrEN's H is above the five rivals'", "gzsl", _above_inductive("gzsl", "h")),
    Claim("GZSL: PrEN's s is not", "gzsl", _above_inductive("gzsl", "s", above=False)),
    Claim("h is safe from 30 to 70, and 10 is far below (CUB PS)", "sensitivity", _flat("dim", 10, 30)),
    Claim("K is safe above 30, and 10 is far below (CUB PS)", "sensitivity", _flat("heads", 10, 30)),
    Claim("49 more heads cost 1.1 % of the backbone", "complexity", _cost),
)
