"""Curves by round, and everything that a run notes about itself."""

from __future__ import annotations

from typing import Any

from pren.methods.registry import METHODS
from pren.report.facts import RunFacts
from pren.report.html import Html, join, number, percent, tag
from pren.report.page import Section, code, pairs
from pren.report.svg import Series, line_chart

Points = list[tuple[float, float]]


def curves(facts: RunFacts) -> Section | None:
    """A small chart for everything that is known of rounds."""
    history = facts.history
    if len(history) < 2:
        return None
    shares = {
        "Agreement of the heads": _points("agreement", history),
        "Pseudo-labels that are new": _churn(history),
        "Pseudo-labels that are right": _by_answers("precision", facts),
        "Top-1, by the answers": _top1(facts),
    }
    others = [name for name in history[-1] if name not in ("round", "changed", "agreement")]
    charts = [_chart(name.replace("_", "-").capitalize(), _points(name, history)) for name in others]
    charts += [_chart(title, points, share=True) for title, points in shares.items() if points]
    return Section("training", "Training", "How it learned", tag("div", charts, class_="charts small"))


def _chart(title: str, points: Points, *, share: bool = False) -> Html | None:
    if not points:
        return None
    line = [Series(title, points)]
    if share:
        return line_chart(title, line, x="round", show_y=percent, bounds=(0, 1), whole=True)
    return line_chart(title, line, x="round", whole=True, show_y=lambda value: f"{value:g}")


def _points(name: str, history: list[dict[str, Any]]) -> Points:
    return [(float(row["round"]), float(row[name])) for row in history if row.get(name) is not None]


def _churn(history: list[dict[str, Any]]) -> Points:
    """Which share of the pseudo-labels was not there the round before."""
    rows = [row for row in history if row.get("pseudo_labels") and row.get("changed") is not None]
    return [(float(row["round"]), row["changed"] / row["pseudo_labels"]) for row in rows]


def _by_answers(name: str, facts: RunFacts) -> Points:
    rows = zip(facts.history, facts.by_answers, strict=False)  # an older version has not noted it
    return [(float(row["round"]), known[name]) for row, known in rows if name in known]


def _top1(facts: RunFacts) -> Points:
    """After every round: what was noted before the next one, and in the end the run's own figure."""
    points = [(number - 1, value) for number, value in _by_answers("top1_before", facts)]
    metrics = facts.summary["metrics"]
    return [*points, (float(facts.history[-1]["round"]), metrics["top1"])] if points and metrics else points


def details(facts: RunFacts) -> Section:
    """Parameters, versions, hashes, the command."""
    summary, record = facts.summary, facts.summary["record"]
    source = record.get("source", {})
    asked = summary["extractor"]
    what: list[tuple[str, object]] = [
        ("method", METHODS[summary["method"]].title),
        ("data", summary["data"]),
        ("setting", summary["setting"]),
        *((key, value) for key, value in summary["options"].items()),
    ]
    if asked is not None:
        what.append(("features of", f"{asked['backbone']}, {facts.way_of_backbone} (geometry {asked['geometry']})"))
    what += [(f"{name} hash", value) for name, value in record.get("hashes", {}).items()]
    what += [("signatures", source.get("signatures", {}).get("kind", "–")), ("started", record.get("started", "–"))]
    groups = [
        ("Run", pairs(what)),
        ("Parameters", pairs([(name, _shown(value)) for name, value in summary["params"].items()])),
        ("Versions", pairs([("python", record.get("python", "–")), *record.get("versions", {}).items()])),
    ]
    made = [tag("div", tag("h3", title), content) for title, content in groups]
    command = record.get("command") or ""
    return Section(
        "details",
        "Details",
        "How it was made",
        join([tag("p", "Made by ", code(command)) if command else None, tag("div", made, class_="columns")]),
    )


def _shown(value: object) -> str:
    return number(value) if isinstance(value, float) and abs(value) >= 0.01 else str(value)
