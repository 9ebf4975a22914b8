"""Curves by round, and everything that a run notes about itself."""

from __future__ import annotations

from typing import Any

from pren.methods.registry import METHODS
from pren.report.facts import RunFacts
from pren.report.html import Html, join, number, percent, tag
from pren.report.page import Section, code, pairs
from pren.report.svg import Series, line_chart

# The figures of a round that are shares, and what to call them.
SHARES = {"agreement": "Agreement of the heads", "precision": "Pseudo-labels right", "top1": "Top-1 of the pool"}


def curves(facts: RunFacts) -> Section | None:
    """A small chart for everything that rounds note."""
    history = facts.history
    if len(history) < 2:
        return None
    charts = [_curve(name, history) for name in history[-1] if name not in ("round", "changed")]
    charts.append(_churn(history) if "changed" in history[-1] else None)
    shown = [chart for chart in charts if chart is not None]
    return Section("training", "Training", "How it learned", tag("div", shown, class_="charts"))


def _points(name: str, history: list[dict[str, Any]]) -> list[tuple[float, float]]:
    return [(float(row["round"]), float(row[name])) for row in history if row.get(name) is not None]


def _curve(name: str, history: list[dict[str, Any]]) -> Html | None:
    points = _points(name, history)
    if not points:
        return None
    title = SHARES.get(name, name.replace("_", "-").capitalize())
    if name in SHARES:
        return line_chart(title, [Series(title, points)], x="round", show_y=percent, bounds=(0, 1), whole=True)
    return line_chart(title, [Series(title, points)], x="round", whole=True, show_y=lambda v: f"{v:g}")


def _churn(history: list[dict[str, Any]]) -> Html | None:
    """Which share of the pseudo-labels was not there the round before."""
    rows = [row for row in history if row.get("pseudo_labels")]
    points = [(float(row["round"]), row["changed"] / row["pseudo_labels"]) for row in rows]
    if not points:
        return None
    line = Series("new", points)
    return line_chart("Pseudo-labels that are new", [line], x="round", show_y=percent, bounds=(0, 1), whole=True)


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
        what.append(("features of", f"{asked['backbone']}, frozen (geometry {asked['geometry']})"))
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
