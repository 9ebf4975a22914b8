"""The end of a fit, for a person with photographs: what to expect, what each class got, what to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median
from typing import Any

from pren.runs.store.tables import PredictedImage
from pren.trust import STRANGE

LEVELS = {"sure": 0.95, "likely": 0.5}  # the least confidence of a label; what is less is doubtful
DOUBTFUL = "doubtful"

MANY = 3  # times the usual number of images is suspicious
FEW_NAMES = 5
MOST_COUNTS = 30


def label_facts(images: Iterable[PredictedImage], groups: list[list[str]]) -> dict[str, Any]:
    """What is to be said about labels; JSON-ready.

    Args:
        images: The rows of predictions.csv.
        groups: The classes that an image can be taken for: the unseen ones, and in GZSL the seen ones. How many images
            are usual differs between them.
    """
    counts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    strange: list[tuple[float, str]] = []
    for image in images:
        found["images"] += 1
        if image.error:
            found["unreadable"] += 1
            continue
        if image.label:
            counts[image.label] += 1
            found[_level(image.confidence)] += 1
        else:
            found["unlabelled"] += 1
        if image.familiarity is not None and image.familiarity < STRANGE:
            strange.append((image.familiarity, image.name))
    candidates = [name for group in groups for name in group]
    levels = {level: found[level] for level in (*LEVELS, DOUBTFUL)}
    strange.sort(key=lambda one: one[0])
    return {
        "images": found["images"],
        "unreadable": found["unreadable"],
        "unlabelled": found["unlabelled"],
        "per_class": {name: counts[name] for name in sorted(candidates, key=lambda name: (-counts[name], name))},
        "empty": [name for name in candidates if not counts[name]],
        "crowded": [name for group in groups for name in _crowded(group, counts)],
        "confidence": levels if any(levels.values()) else None,
        "strange": [name for _, name in strange],
    }


def _crowded(group: list[str], counts: Counter[str]) -> list[str]:
    """The classes that have far more images than is usual in their group."""
    usual = median(counts[name] for name in group)
    return [name for name in group if counts[name] > MANY * max(usual, 1)]


def _level(confidence: float | None) -> str:
    """How sure a label is."""
    if confidence is None:
        return "unknown"
    return next((level for level, least in LEVELS.items() if confidence >= least), DOUBTFUL)


def in_lines(facts: dict[str, Any], every_class: bool) -> list[str]:
    """The same for people; of many classes the counts only if asked for."""
    lines = []
    if facts["confidence"] is not None:
        sure, likely, doubtful = (facts["confidence"][level] for level in ("sure", "likely", "doubtful"))
        lines.append(f"{sure} labels are sure (0.95 or more), {likely} likely (0.5 or more), {doubtful} doubtful.")
    if facts["unlabelled"]:
        lines.append(f"{facts['unlabelled']} images have no label: none is sure enough.")
    counts = facts["per_class"]
    if every_class or len(counts) <= MOST_COUNTS:
        lines.append("Images per class: " + ", ".join(f"{name} ({count})" for name, count in counts.items()))
    else:
        least, usual, most = min(counts.values()), median(counts.values()), max(counts.values())
        lines.append(
            f"Images per class: {least} to {most}, half of the classes {usual:g} or more ('pren show' has all)."
        )
    if facts["empty"]:
        lines.append(f"No image at all: {some(facts['empty'])}. They may not be there, or be taken for another class.")
    if facts["crowded"]:
        lines.append(f"Suspiciously many images: {some(facts['crowded'])}. Others may be among them.")
    if facts["strange"]:
        many = len(facts["strange"])
        look = "1 image looks" if many == 1 else f"{many} images look"
        lines.append(f"{look} like none of the classes: {some(facts['strange'])}.")
    return lines


def some(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - FEW_NAMES
    return ", ".join(names[:FEW_NAMES]) + (f" and {more} more" if more > 0 else "")
