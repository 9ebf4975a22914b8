"""Figures about labels: precision against coverage, classes one by one, what is confused, the map, the attributes."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from pren.report.facts import ReportedImage, RunFacts, most_confused
from pren.report.html import Html, number, percent, tag
from pren.report.matrix import MOST_CLASSES, matrix, order_classes
from pren.report.page import Section, table
from pren.report.scatter import draw_map
from pren.report.svg import Series, bar, line_chart

CURVE_POINTS = 80
BESIDE = 10  # classes whose matrix leaves room for a table beside it
SHOWN_CONFUSIONS = 40


def coverage(facts: RunFacts) -> Section | None:
    """How many labels are right among the surest ones."""
    sure = [image for image in facts.images if image.confidence is not None]
    if len(sure) < 2:
        return None
    expected = np.cumsum([image.confidence for image in sure]) / np.arange(1, len(sure) + 1)
    lines = [Series("right, as expected", _curve(expected, len(sure)), dashed=True)]
    known = [image for image in sure if image.truth]
    if known:
        right = np.cumsum([not image.wrong for image in known]) / np.arange(1, len(known) + 1)
        lines.insert(0, Series("right, by the answers", _curve(right, len(known))))
    least = min(value for line in lines for _, value in line.points)
    chart = line_chart(
        "Precision against coverage",
        lines,
        x="share of the labels that are used, the surest first",
        show_x=percent,
        show_y=percent,
        bounds=(max(0.0, np.floor(10 * least - 0.5) / 10), 1.0),
    )
    reliability = (facts.summary["metrics"] or {}).get("reliability")
    notes = "Use fewer labels, and more of them are right."
    if reliability is not None:
        off = f"{100 * reliability['ece']:.1f} points"
        notes += f" Confidence is off by {off} in the mean (expected calibration error)."
    charts = tag("div", chart, _levels(facts.summary["labels"]["levels"]), class_="charts")
    return Section("coverage", "Precision", "How many to use", charts, notes)


def _curve(values: np.ndarray[tuple[int], np.dtype[np.float64]], count: int) -> list[tuple[float, float]]:
    """Points of a curve over shares; the first few labels jump too much to say anything."""
    places = np.unique(np.linspace(min(count, 1 + count // 50) - 1, count - 1, CURVE_POINTS).astype(int))
    return [((place + 1) / count, float(values[place])) for place in places.tolist()]


def _levels(levels: dict[str, int] | None) -> Html | None:
    """How many labels are how sure."""
    if levels is None:
        return None
    named = {"sure": "0.95 or more", "likely": "0.5 or more", "doubtful": "less"}
    total, kinds = sum(levels.values()) or 1, {"sure": "good", "likely": "mid", "doubtful": "warn"}
    parts, start = [], 0.0
    for level, count in levels.items():
        width = 400 * count / total
        parts.append(tag("rect", x=start, width=width, height=26, class_=kinds[level]))
        start += width
    drawing = tag("svg", parts, viewBox="0 0 400 26", class_="levels", aria_hidden="true", preserveAspectRatio="none")
    rows = [
        tag(
            "li",
            tag("svg", tag("circle", cx=5, cy=5, r=5, class_=kinds[level]), viewBox="0 0 10 10", class_="spot"),
            tag("strong", f"{count:,}"),
            f" {level} ({named[level]})",
        )
        for level, count in levels.items()
    ]
    return tag(
        "figure", tag("figcaption", tag("strong", "How sure labels are")), drawing, tag("ul", rows), class_="chart"
    )


def class_table(facts: RunFacts) -> Section:
    """Every class in a row."""
    header = ["class", "images", *(["expected right", "sure", "doubtful"] if facts.sure else [])]
    scored = {} if facts.summary["metrics"] is None else {r["name"]: r for r in facts.summary["metrics"]["per_class"]}
    if facts.seen:
        header.insert(1, "kind")
    if scored:
        header += ["in truth", "found", "labels right"]
    header.append("confused with")
    partner = _partners(facts)
    texts = {0, len(header) - 1} | ({1} if facts.seen else set())
    rows: list[list[object]] = []
    for name in facts.candidates:
        images = facts.of_class[name]
        kind = ["seen" if name in facts.seen else "unseen"] if facts.seen else []
        row: list[object] = [name, *kind]
        row += [len(images), *(_sureness(images) if facts.sure else [])]
        if scored:
            row += _truth(scored.get(name), images)
        rows.append([*row, partner.get(name, "–")])
    made = table(header, rows, id="class-table", caption="Classes", texts=texts)
    intro = (
        "Press a heading to sort. 'Found' is the share of a class's images that got its label, 'labels right' the "
        "share of its labels that are right."
    )
    return Section("table", "Class by class", "Class by class", made, intro if scored else None)


def _sureness(images: list[ReportedImage]) -> list[object]:
    known = [image.confidence for image in images if image.confidence is not None]
    if not known:
        return [("–", -1), 0, 0]
    mean = fmean(known)
    return [
        (tag("span", bar(mean), percent(mean), class_="with-bar"), number(mean)),
        sum(value >= 0.95 for value in known),
        sum(image.doubtful for image in images),
    ]


def _truth(scored: dict[str, object] | None, images: list[ReportedImage]) -> list[object]:
    known = [image for image in images if image.truth]
    right = fmean(not image.wrong for image in known) if known else None
    found = None if scored is None else scored["accuracy"]
    assert found is None or isinstance(found, float)
    return [
        0 if scored is None else scored["images"],
        (percent(found), -1 if found is None else found),
        (percent(right), -1 if right is None else right),
    ]


def _partners(facts: RunFacts) -> dict[str, str]:
    """With which other class each is confused most."""
    best: dict[str, str] = {}
    for one, other, _ in most_confused(facts.confused, len(facts.confused)):
        for name, partner in ((one, other), (other, one)):
            best.setdefault(name, partner)
    return best


def confusions(facts: RunFacts) -> Section | None:
    """The matrix, and its largest cells in words."""
    by_answers = facts.summary["metrics"] is not None
    cells = {pair: value for pair, value in facts.confused.items() if value > 0}  # a label can be wholly sure
    there = sorted({name for pair in cells for name in pair})
    wrong = sorted(((v, *pair) for pair, v in cells.items() if pair[0] != pair[1] and v >= 0.05), reverse=True)
    if len(there) < 2 or not wrong:
        return None
    rows, columns = ("the class by the answers", "the label") if by_answers else ("the label", "the second-best class")
    drawing = None
    if len(there) <= MOST_CLASSES:
        names = order_classes(there, cells)
        drawing = matrix(names, cells, rows=rows, columns=columns, count="images")
    listed = table(
        [rows.removeprefix("the ").removesuffix(" by the answers"), columns.removeprefix("the "), "images"],
        [[one, other, (number(round(value, 1)), value)] for value, one, other in wrong[:SHOWN_CONFUSIONS]],
        id="confusion-table",
        caption="What is taken for what",
        texts=(0, 1),
    )
    intro = (
        "Classes that are taken for each other stand side by side."
        if by_answers
        else "There are no answers. Each label counts for its second-best class as much as it is unsure."
    )
    content = tag("div", drawing, tag("div", listed), class_="split" if len(there) <= BESIDE else None)
    return Section("confusion", "Confusions", "What is taken for what", content, intro)


def the_map(facts: RunFacts) -> Section | None:
    """Images and classes in two dimensions."""
    if facts.details is None:
        return None
    count = 1 + max(image.place for image in facts.images)
    labels, tips, doubtful = [""] * count, [""] * count, [False] * count
    for image in facts.images:
        sure = "" if image.confidence is None else f", {percent(image.confidence)} sure"
        truth = f" (is {image.truth})" if image.wrong else ""
        labels[image.place], doubtful[image.place] = image.label, image.doubtful
        tips[image.place] = f"{image.name}: {image.label}{sure}{truth}"
    return Section("map", "Map", "Where images and classes lie", draw_map(facts.details.map, labels, tips, doubtful))


def attributes(facts: RunFacts, method: str) -> Section | None:
    """Which attributes speak for a label."""
    if facts.details is None:
        return None
    found = facts.details.evidence
    if found is None:
        said = f"Not defined for {method}: its scores are no sum over the attributes of a class."
        if facts.details.apart:
            said += " What sets the descriptions of confused classes apart stands with these classes above."
        return Section("attributes", "Attributes", "Which attributes speak for a label", tag("p", said))
    rows = [[each.label, _said(each.favours), _said(each.opposes)] for each in found]
    header = ["label", "speaks for it", "speaks against it"]
    made = table(header, rows, id="attribute-table", caption="Attributes", texts=(0, 1, 2))
    intro = "What an attribute adds to the lead of a label over the second-best class, in the mean over its images."
    return Section("attributes", "Attributes", "Which attributes speak for a label", made, intro)


def _said(parts: list[tuple[str, float]]) -> str:
    return ", ".join(f"{name} ({value:+.3g})" for name, value in parts) or "–"
