"""The top of a report: what was run, how good the labels are, what is safe to use, what to do next."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

from pren.evaluation import FIGURES, TITLES
from pren.methods.registry import METHODS
from pren.report.facts import SAFE, RunFacts
from pren.report.html import Html, counted, percent, tag
from pren.report.page import code
from pren.runs.store.folder import PREDICTIONS
from pren.runs.summary import some


def title_of(summary: dict[str, Any]) -> str:
    """Which method on which data."""
    return f"{METHODS[summary['method']].title} on {Path(summary['data']).name}"


def subtitle_of(facts: RunFacts) -> str:
    """How large the problem is."""
    learned = f", learned from {counted(facts.details.labelled, 'labelled image')}" if facts.details else ""
    split, setting = facts.summary["split"], facts.summary["setting"].upper()
    return (
        f"{counted(len(facts.images), 'unlabelled image')} of {counted(len(facts.unseen), 'class', 'classes')} nobody "
        f"labelled{' and of seen ones' if facts.seen else ''}{learned} of {facts.described} seen classes "
        f"({setting}{f', split {split}' if split else ''})"
    )


def opening(facts: RunFacts) -> Html:
    """Cards with figures, a sentence for each, and what to do next."""
    cards = [_expected(facts), _safe(facts), _doubtful(facts)]
    steps = [tag("li", step) for step in next_steps(facts)]
    return tag(
        "div",
        tag("div", cards, class_="cards"),
        tag("div", tag("h2", "What to do next", id="next-title"), tag("ol", steps), class_="next"),
        class_="opening",
    )


def card(heading: str, figure: str, lines: list[object], kind: str = "") -> Html:
    """A figure that matters, with a few sentences."""
    said = [tag("p", line) for line in lines if line]
    return tag("div", tag("h2", heading), tag("p", figure, class_="figure"), said, class_=f"card {kind}".strip())


def _expected(facts: RunFacts) -> Html:
    """How many labels are right: the forecast, and the truth where answers are known."""
    lines: list[object] = []
    forecast, metrics = facts.forecast, facts.summary["metrics"]
    truth = None if metrics is None else _truth(metrics)
    if forecast is None:
        lines.append("No rehearsals were made, so nothing foretells how many labels are right.")
        figure = "unknown" if truth is None else truth[0]
    else:
        low, high = forecast.percent()
        figure = f"{low}–{high} %"
        lines.append(
            f"of the labels are expected to be right, if the unseen classes are as hard as the seen ones. In "
            f"{len(forecast.rehearsed)} rehearsals, {forecast.held_out} seen classes played the unseen ones."
        )
        if forecast.apart != 1.0:
            lines.append("The unlabelled images look unlike the labelled ones, which makes this less certain.")
    if truth is not None:
        lines.append(tag("strong", truth[1]))
    return card("Right labels", figure, lines)


def _truth(metrics: dict[str, Any]) -> tuple[str, str]:
    """A figure, and a sentence about all of them."""
    figures = ", ".join(f"{TITLES[name]} {percent(metrics[name], 1)}" for name in FIGURES[metrics["setting"]])
    return percent(metrics["macc"], 1), f"By the answers, {percent(metrics['macc'], 1)} are right ({figures})."


def _safe(facts: RunFacts) -> Html:
    """How many labels can be used without a look at them."""
    least, safe = facts.safe
    if not facts.sure:
        return card("Safe to use", "unknown", ["Without rehearsals nobody knows how sure a label is."])
    if not safe:
        said = f"As far as is known, not even of the surest labels {percent(SAFE)} are right."
        return card("Safe to use", "0", [said])
    known = [image for image in safe if image.truth]
    right = sum(not image.wrong for image in known)
    share = percent(len(safe) / len(facts.images))
    lines: list[object] = [f"labels, {share} of all: those with a confidence of {least:.2f} or more."]
    if facts.alike:
        lines[0] = f"{lines[0]} At least about {percent(SAFE)} of them should be right."
    else:
        lines.append(
            f"Look at some before you use them: the unlabelled images look unlike the labelled ones, so confidence may "
            f"be too high, and fewer than {percent(SAFE)} right."
        )
    if known:
        lines.append(tag("strong", f"By the answers, {percent(right / len(known), 1)} of them are right."))
    heading, kind = ("Safe to use", "good") if facts.alike else ("Perhaps safe to use", "warn")
    return card(heading, f"{len(safe):,}", lines, kind)


def _doubtful(facts: RunFacts) -> Html:
    """How many labels want a look."""
    labels = facts.summary["labels"]
    doubtful, strange = sum(i.doubtful for i in facts.images), sum(i.strange for i in facts.images)
    known = facts.sure
    lines: list[object] = []
    if known:
        lines.append("labels have a confidence below 0.5: look before you use them.")
    else:
        lines.append("Nothing tells sure labels from doubtful ones.")
    if strange:
        lines.append(f"{counted(strange, 'image looks', 'images look')} like none of the classes.")
    if labels["unlabelled"]:
        lines.append(f"{counted(labels['unlabelled'], 'image has', 'images have')} no label: none is sure enough.")
    if labels["unreadable"]:
        lines.append(f"{counted(labels['unreadable'], 'file')} cannot be read.")
    return card("Doubtful", f"{doubtful:,}" if known else "unknown", lines, "warn" if known and doubtful else "")


def next_steps(facts: RunFacts) -> list[list[object]]:
    """What to do, the most useful first."""
    labels, run, (least, safe) = facts.summary["labels"], facts.summary["run"], facts.safe
    steps: list[list[object]] = []
    if "hold_out" in facts.summary["options"]:
        steps.append(["These labels tell how good the method is. For labels to use, fit again without --hold-out."])
    if safe and not math.isinf(least):
        use = f"Use the {counted(len(safe), 'safe label')}"
        if not facts.alike:
            use = f"Look at some of the {len(safe):,} surest labels before you use them"
        steps.append(
            [
                f"{use}: the rows of ",
                tag("code", PREDICTIONS),
                f" with a confidence of {least:.2f} or more.",
            ]
        )
    if facts.forecast is None:
        steps.append(["Ask what the labels are worth: fit again with ", code("--rehearsals 10"), "."])
    if facts.details is not None and facts.details.to_label:
        own = facts.summary["record"].get("source", {}).get("name") == "folder"
        command = code(f"pren suggest {shlex.quote(run)} --out labels.csv")
        how = [" ", command, " makes a table to fill in."] if own else []
        steps.append(
            [
                "Name the classes of the ",
                tag("a", "images to label next", href="#label"),
                ", and fit again: they stand for many others.",
                *how,
            ]
        )
    if labels["empty"]:
        steps.append([f"Got no image at all: {some(labels['empty'])}. Not in the pool, or taken for another class?"])
    if labels["crowded"]:
        steps.append([f"Suspiciously many images: {some(labels['crowded'])}. Others may be among them."])
    if labels["strange"]:
        steps.append([f"Look at these, which look like none of the classes: {some(labels['strange'])}."])
    if not steps:
        steps.append(["Look at the classes below, and decide."])
    return steps
