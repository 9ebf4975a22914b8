"""What a report of a run is made of; `reading.py` collects it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pren.evaluation import FIGURES, TITLES
from pren.report.charts import Points
from pren.report.evidence import Difference, Evidence
from pren.report.image import ReportedImage, share_right
from pren.report.photographs import Photographs
from pren.report.scatter import Map
from pren.runs.store.folder import Figures
from pren.runs.summary import LabelSummary
from pren.trust import Forecast
from pren.trust.confidence import threshold
from pren.trust.levels import LIKELY, SURE

Confused = Mapping[tuple[str, str], float]  # (one class, the other) -> how many inputs


@dataclass(frozen=True)
class Curve:
    """What each round had: (round, value); a share goes from 0 to 1."""

    title: str
    points: Points
    share: bool = False


@dataclass(frozen=True, eq=False)
class Details:
    """What only the data tell.

    Attributes:
        to_label: Places of the inputs to label next, best first.
        map: Where inputs and classes lie.
        evidence: Which attributes support each label; None where the method has no such sum.
        apart: For two classes, the attributes in which their descriptions differ most.
        labelled: How many inputs the method has learned from.
    """

    to_label: Sequence[int]
    map: Map
    evidence: Sequence[Evidence] | None
    apart: Mapping[tuple[str, str], Sequence[Difference]]
    labelled: int


@dataclass(frozen=True, eq=False)
class RunFacts:
    """All that a report of a run is made of.

    Attributes:
        run: Its folder; "" if it was not kept.
        method: The title of the method.
        data: What the data are called.
        setting: "zsl" or "gzsl".
        split: Of the data; None if there is but one.
        noun: "photograph" or "input".
        held_out: Whether some labelled inputs were held out to measure.
        own: Whether the data are a folder of a person's own.
        command: What the run was started with; "" if unknown.
        record: Names and values to show as they are, by heading.
        labels: In a few facts.
        metrics: By the answers; None without.
        forecast: How many labels should be right; None without rehearsals.
        curves: What is known of rounds.
        unseen: The unseen classes, by name.
        seen: The others that an input can be taken for: none in ZSL.
        described: How many seen classes there are.
        images: Those that can be read, the surest first.
        confused: (class, label) by the answers; else (label, runner-up) and how many are expected.
        photographs: What inputs look like.
        details: None if the data are not there any more.
        missing: Why not.
    """

    run: str
    method: str
    data: str
    setting: str
    split: str | None
    noun: str
    held_out: bool
    own: bool
    command: str
    record: Mapping[str, Mapping[str, str]]
    labels: LabelSummary
    metrics: Figures | None
    forecast: Forecast | None
    curves: Sequence[Curve]
    unseen: Sequence[str]
    seen: Sequence[str]
    described: int
    images: Sequence[ReportedImage]
    confused: Confused
    photographs: Photographs
    details: Details | None
    missing: str = ""

    @property
    def alike(self) -> bool:
        """Whether the pool is of the kind that confidence was learned on; if not, it may be too high."""
        return self.forecast is None or self.forecast.apart == 1.0

    @property
    def figures(self) -> list[tuple[str, float | None]]:
        """The titles and values of the metrics to show."""
        if self.metrics is None:
            return []
        return [(TITLES[name], getattr(self.metrics, name)) for name in FIGURES[self.metrics.setting]]

    @cached_property
    def candidates(self) -> list[str]:
        """All classes that an input can be taken for."""
        return [*self.unseen, *self.seen]

    @cached_property
    def least_safe(self) -> float:
        """The least confidence of labels that are safe to use; infinite if none are.

        As many are safe as `--min-accuracy` would leave, without doubtful ones, which need a check in any case.
        """
        sure = np.array([math.nan if image.confidence is None else image.confidence for image in self.images])
        return max(threshold(sure, SURE), LIKELY)

    @cached_property
    def safe(self) -> list[ReportedImage]:
        """Those whose labels are."""
        return [i for i in self.images if i.confidence is not None and i.confidence >= self.least_safe]

    @property
    def safe_right(self) -> float | None:
        """How many of the safe labels are right, by the answers."""
        return share_right(self.safe)

    @cached_property
    def of_class(self) -> dict[str, list[ReportedImage]]:
        """The inputs of every candidate, the surest first."""
        found: dict[str, list[ReportedImage]] = {name: [] for name in self.candidates}
        for image in self.images:
            found[image.label].append(image)
        return found

    @cached_property
    def sure(self) -> bool:
        """Whether any label has a confidence."""
        return any(image.confidence is not None for image in self.images)


def most_confused(confused: Confused, most: int) -> list[tuple[str, str, float]]:
    """Pairs of different classes, both directions together, the most confused first."""
    found: dict[tuple[str, str], float] = {}
    for (one, other), value in confused.items():
        if one != other:
            pair = (min(one, other), max(one, other))
            found[pair] = found.get(pair, 0.0) + value
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [(one, other, value) for (one, other), value in ranked if value >= 0.5][:most]
