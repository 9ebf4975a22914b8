"""The paper's claims, and what the results here say about each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple

from pren.methods.registry import METHODS
from pren.research.reproduction.complexity import share_of_more_heads
from pren.research.reproduction.paper import COLUMNS, TOP1, Column
from pren.research.reproduction.plan import EMBEDDED, Plan, Results, WantedCells, title_of
from pren.research.reproduction.sensitivity import BENCHMARK, shared_points
from pren.research.reproduction.sheets import HERE, Sheet
from pren.research.reproduction.tables import QUICK_NOTE, counted

Verdict = Literal["holds", "holds in part", "does not hold here", "cannot be tested here"]
INDUCTIVE = ("devise", "sync", "ale", "sje", "sae-f2s")
FLAT = 0.02  # the most that a flat curve varies


@dataclass(frozen=True)
class Evidence:
    """Figures of all parts."""

    zsl: WantedCells
    gzsl: WantedCells
    sensitivity: WantedCells
    results: Results
    counts_images: bool = False  # GZSL by the paper's protocol

    def figure(self, setting: str, method: str, column: Column, name: str) -> float | None:
        """The mean over seeds; None if it is not known."""
        known = self._by_seed(setting, method, column, name)
        return fmean(known.values()) if known else None

    def paired(self, setting: str, methods: Sequence[str], column: Column, name: str) -> tuple[list[float], int] | None:
        """Means over the seeds that all these methods have, and how many seeds these are; None if there is none."""
        known = [self._by_seed(setting, method, column, name) for method in methods]
        shared = set.intersection(*map(set, known))
        return ([fmean(one[seed] for seed in shared) for one in known], len(shared)) if shared else None

    def runs(self, setting: str, method: str, column: Column) -> int:
        """How many seeds of a method are computed."""
        wanted = self._cells(setting).of(method, column)
        return 0 if wanted is None else len(wanted.done(self.results))

    def columns(self, setting: str) -> list[Column]:
        """The columns with data."""
        return list(dict.fromkeys(wanted.column for wanted in self._cells(setting).cells))

    def why_not(self, part: str) -> str:
        """Why there are no figures."""
        asked = self.sensitivity if part == "sensitivity" else self._cells(part)
        if not asked.missing:
            return "not computed"
        return f"no data: {', '.join(map(title_of, asked.missing))}; see the notes of its table"

    def _by_seed(self, setting: str, method: str, column: Column, name: str) -> dict[int | None, float]:
        wanted = self._cells(setting).of(method, column)
        counted = f"{name}_images" if setting == "gzsl" and self.counts_images else name
        return {} if wanted is None else wanted.by_seed(self.results, counted)

    def _cells(self, setting: str) -> WantedCells:
        return self.zsl if setting == "zsl" else self.gzsl


class Finding(NamedTuple):
    """Whether a claim holds, the figures, and whether they are of the embedded data, which is not in the paper."""

    holds: bool
    figures: str
    embedded: bool = False


Check = Callable[[Evidence], Iterator[Finding]]


@dataclass(frozen=True)
class Claim:
    """What the paper says, which part of a reproduction checks it, and how."""

    says: str
    part: str
    check: Check


def claims(plan: Plan, evidence: Evidence) -> Sheet:
    """One row for each claim."""
    rows = []
    for claim in CLAIMS:
        findings = list(claim.check(evidence))
        figures = "; ".join(finding.figures for finding in findings) or evidence.why_not(claim.part)
        rows.append([claim.says, _verdict(findings), figures, claim.part])
    notes = [QUICK_NOTE] if plan.quick else []
    notes += [
        f"{title_of(EMBEDDED)} is not in the paper, but needs no download. It decides a verdict only where the paper's "
        "data are missing. Means over seeds, the last round; PrEN and its variants, and the points of a curve, over "
        "the seeds that all of them have.",
        "Last column: the part of 'pren reproduce' that computes it.",
    ]
    header = ["the paper says", "verdict", f"figures{HERE}", "part"]
    return Sheet(name="claims", title="The paper's claims", header=header, rows=rows, notes=notes, texts=len(header))


def _verdict(findings: list[Finding]) -> Verdict:
    if not findings:
        return "cannot be tested here"
    decisive = [finding for finding in findings if not finding.embedded] or findings
    right = sum(finding.holds for finding in decisive)
    return "holds" if right == len(decisive) else "holds in part" if right else "does not hold here"


def _order(name: str) -> Check:
    """PrEN above PrEN w/o Proj above Progressive Training."""

    def check(evidence: Evidence) -> Iterator[Finding]:
        for column in evidence.columns("zsl"):
            known = evidence.paired("zsl", ("pren", "pren-no-projection", "progressive"), column, name)
            if known is not None:
                figures, seeds = known
                holds = figures == sorted(figures, reverse=True)
                shown = f"{title_of(column)}: {_shown(figures, ' / ')} ({counted(seeds)})"
                yield Finding(holds, shown, column == EMBEDDED)

    return check


def _gain(name: str, least: float) -> Check:
    """PrEN is at least so far above Progressive Training, over the paper's columns, as in its table."""

    def check(evidence: Evidence) -> Iterator[Finding]:
        columns = [column for column in evidence.columns("zsl") if column != EMBEDDED]
        pairs = [evidence.paired("zsl", ("pren", "progressive"), column, name) for column in columns]
        gains = [figures[0] - figures[1] for figures, _ in filter(None, pairs)]
        if gains:
            yield Finding(fmean(gains) >= least, f"{_shown([fmean(gains)])} over {len(gains)} of the paper's 7 columns")

    return check


def _above_inductive(setting: str, name: str, above: bool = True) -> Check:
    """PrEN against the best of the computed inductive rivals."""

    def check(evidence: Evidence) -> Iterator[Finding]:
        for column in evidence.columns(setting):
            ours = evidence.figure(setting, "pren", column, name)
            rivals = {rival: evidence.figure(setting, rival, column, name) for rival in INDUCTIVE}
            known = {rival: figure for rival, figure in rivals.items() if figure is not None}
            if ours is not None and known:
                best = max(known, key=known.__getitem__)
                figures = f"{_shown([ours])} against {_named(best, known[best])}"
                seeds = counted(evidence.runs(setting, "pren", column))
                unknown = ", ".join(METHODS[rival].title for rival in INDUCTIVE if rival not in known)
                without = f", {unknown} not computed" if unknown else ""
                shown = f"{title_of(column)}: {figures}, {seeds} of PrEN{without}"
                yield Finding((ours > known[best]) == above, shown, column == EMBEDDED)

    return check


def _second(rival: str, columns: tuple[Column, ...]) -> Check:
    """PrEN is below one rival and above all others in the table."""

    def check(evidence: Evidence) -> Iterator[Finding]:
        for column in columns:
            figures = {who: evidence.figure("zsl", who, column, "top1") for who in TOP1}
            known = {who: figure for who, figure in figures.items() if figure is not None}
            ours, first = known.pop("pren", None), known.pop(rival, None)
            if ours is not None and first is not None:
                yield Finding(ours < first, f"{title_of(column)}: {_shown([ours])} against {_named(rival, first)}")
            if ours is not None and known:
                best = max(known, key=known.__getitem__)
                yield Finding(
                    ours > known[best], f"{title_of(column)}: the best of the others is {_named(best, known[best])}"
                )

    return check


def _above(rival: str, columns: tuple[Column, ...]) -> Check:
    """PrEN's mAcc is above a rival's."""

    def check(evidence: Evidence) -> Iterator[Finding]:
        for column in columns:
            ours, theirs = (evidence.figure("zsl", who, column, "macc") for who in ("pren", rival))
            if ours is not None and theirs is not None:
                yield Finding(ours > theirs, f"{title_of(column)}: {_shown([ours])} against {_named(rival, theirs)}")

    return check


def _best(columns: tuple[Column, ...]) -> Check:
    """PrEN is above all others in the table."""

    def check(evidence: Evidence) -> Iterator[Finding]:
        for column in columns:
            ours = evidence.figure("zsl", "pren", column, "top1")
            others = [evidence.figure("zsl", who, column, "top1") for who in TOP1 if who != "pren"]
            known = [figure for figure in others if figure is not None]
            if ours is not None and known:
                yield Finding(ours > max(known), f"{title_of(column)}: {_shown([ours])} against {_shown([max(known)])}")

    return check


def _harder_split(evidence: Evidence) -> Iterator[Finding]:
    """PrEN and most others are lower on the proposed split than on the standard one."""
    for name in ("cub", "awa2", "sun"):
        pairs = {who: [evidence.figure("zsl", who, (name, split), "top1") for split in ("SS", "PS")] for who in TOP1}
        known = {who: (ss, ps) for who, (ss, ps) in pairs.items() if ss is not None and ps is not None}
        if "pren" in known:
            ss, ps = known["pren"]
            yield Finding(ps < ss, f"{title_of((name, ''))}: PrEN SS {_shown([ss])}, PS {_shown([ps])}")
            lower = sum(ps < ss for ss, ps in known.values())
            yield Finding(lower > len(known) / 2, f"lower on PS: {lower} of {len(known)} methods")


def _largest_fall(evidence: Evidence) -> Iterator[Finding]:
    """PrEN loses most on AWA2."""
    falls = {}
    for name in ("cub", "awa2", "sun"):
        ss, ps = (evidence.figure("zsl", "pren", (name, split), "top1") for split in ("SS", "PS"))
        if ss is not None and ps is not None:
            falls[name] = ss - ps
    if "awa2" in falls and len(falls) > 1:
        figures = ", ".join(f"{title_of((name, ''))} {_shown([fall])}" for name, fall in falls.items())
        yield Finding(falls["awa2"] == max(falls.values()), figures)


def _flat(axis: str, smallest: int, safe: int) -> Check:
    """The curve rises from the smallest value to a safe one, and is flat from there."""

    def check(evidence: Evidence) -> Iterator[Finding]:
        points, seeds = shared_points(evidence.sensitivity, evidence.results, BENCHMARK, axis)
        later = [figure for at, figure in points.items() if at >= safe]
        if smallest in points and len(later) > 1:
            figures = ", ".join(f"{at}: {_shown([figure])}" for at, figure in sorted(points.items()))
            rises = points[smallest] < min(later)
            said = f"from {smallest} to {safe} it {'rises' if rises else 'does not rise'}"
            yield Finding(rises, f"{said} ({figures}; {counted(seeds)})")
            width = max(later) - min(later)
            yield Finding(width <= FLAT, f"from {safe} on it stays within {_shown([width])} points")

    return check


def _best_point(axis: str, at: int) -> Check:
    """The curve is highest at one value."""

    def check(evidence: Evidence) -> Iterator[Finding]:
        points, seeds = shared_points(evidence.sensitivity, evidence.results, BENCHMARK, axis)
        if at in points and len(points) > 1:
            best = max(points, key=points.__getitem__)
            figures = f"at {at}: {_shown([points[at]])}; the best is {_shown([points[best]])} at {best}"
            yield Finding(points[at] == points[best], f"{figures} ({counted(seeds)})")

    return check


def _cost(evidence: Evidence) -> Iterator[Finding]:
    share = share_of_more_heads()
    yield Finding(share <= 0.012, f"{100 * share:.2f} % (multiply-adds of the real modules)")


def _named(method: str, figure: float) -> str:
    return f"{_shown([figure])} ({METHODS[method].title})"


def _shown(figures: list[float], between: str = ", ") -> str:
    return between.join(f"{100 * figure:.1f}" for figure in figures)


CUB_SS, CUB_PS, AWA2_SS, AWA2_PS, SUN_SS, SUN_PS, SUN10 = COLUMNS
CLAIMS = (
    Claim("PrEN is above PrEN w/o Proj, and that above Progressive Training (Top-1)", "zsl", _order("top1")),
    Claim("The same by mAcc", "zsl", _order("macc")),
    Claim("PrEN gains 16.9 on Progressive Training in the mean (its own table: 15.2)", "zsl", _gain("top1", 0.152)),
    Claim("By mAcc it gains 17.9 (its own table: 16.5)", "zsl", _gain("macc", 0.165)),
    Claim("PrEN is above the five inductive rivals (Top-1)", "zsl", _above_inductive("zsl", "top1")),
    Claim("On CUB, and on PS of AWA2, PrEN is second to QFSL", "zsl", _second("qfsl", (CUB_SS, CUB_PS, AWA2_PS))),
    Claim("On SUN10 PrEN is second to GFZSL", "zsl", _second("gfzsl", (SUN10,))),
    Claim("PrEN is the best of all on SS of AWA2 and on both splits of SUN", "zsl", _best((AWA2_SS, SUN_SS, SUN_PS))),
    Claim("By mAcc PrEN is far above UDA", "zsl", _above("uda", (CUB_SS, CUB_PS))),
    Claim("By mAcc PrEN is above DCL", "zsl", _above("dcl", (CUB_SS, CUB_PS, SUN10))),
    Claim("PrEN and most others are lower on the proposed split than on the standard one", "zsl", _harder_split),
    Claim("The fall from SS to PS is largest on AWA2", "zsl", _largest_fall),
    Claim("GZSL: PrEN's u is above the five rivals'", "gzsl", _above_inductive("gzsl", "u")),
    Claim("GZSL: PrEN's H is above the five rivals'", "gzsl", _above_inductive("gzsl", "h")),
    Claim("GZSL: PrEN's s is not", "gzsl", _above_inductive("gzsl", "s", above=False)),
    Claim("h is safe from 30 to 70, and 10 is far below (CUB PS)", "sensitivity", _flat("dim", 10, 30)),
    Claim("h = 50 is the best (CUB PS)", "sensitivity", _best_point("dim", 50)),
    Claim("K is safe above 30, and 10 is far below (CUB PS)", "sensitivity", _flat("heads", 10, 30)),
    Claim("49 more heads cost little: 1.1 % of the backbone", "complexity", _cost),
)
