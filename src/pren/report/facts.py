"""The facts of a report of a run; `reading.py` collects them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pren.evaluation import FIGURES, TITLES
from pren.label.names import GroupName
from pren.label.summary import LabelSummary
from pren.report.charts import Points
from pren.report.evidence import Apart, Evidence
from pren.report.image import ReportedImage, share_right
from pren.report.photographs import Photographs
from pren.report.scatter import Map
from pren.store.folder import Figures
from pren.trust import Forecast
from pren.trust.confidence import LIKELY, SURE, threshold

Confused = Mapping[tuple[str, str], float]  # (one class, the other) -> how many inputs


@dataclass(frozen=True)
class Curve:
    """A figure of each round: (round, value); a share goes from 0 to 1."""

    title: str
    points: Points
    share: bool = False


@dataclass(frozen=True, eq=False)
class Details:
    """Facts that need the data.

    Attributes:
        to_label: Places of the inputs to label next, best first.
        map: Places of inputs and classes.
        evidence: Which attributes support each label; None if the method has no such sum.
        apart: For two classes, how their descriptions differ.
        labelled: The number of labelled inputs.
    """

    to_label: Sequence[int]
    map: Map
    evidence: Sequence[Evidence] | None
    apart: Mapping[tuple[str, str], Apart]
    labelled: int


@dataclass(frozen=True, eq=False)
class RunFacts:
    """All facts of a report of a run.

    Attributes:
        run: Its folder; "" if it has none.
        method: The title of the method.
        data: The name of the data.
        setting: "zsl" or "gzsl".
        split: Of the data; None if there is only one.
        noun: "photograph" or "input".
        held_out: Whether labelled inputs were held out for evaluation.
        own: Whether the data are a folder of the user.
        command: The command of the run; "" if unknown.
        record: Names and values, by heading.
        labels: In figures.
        metrics: By the answers; None without.
        forecast: How many labels should be right; None without rehearsals.
        rehearsing: What to do for a forecast.
        names: How sure the names of groups are, the least certain first.
        curves: Figures of rounds.
        unseen: The unseen classes, by name.
        seen: The seen candidates: none in ZSL.
        described: How many seen classes there are.
        images: Readable inputs, the surest first.
        confused: (class, label) by the answers; else (label, runner-up) and the expected number.
        photographs: Thumbnails of inputs.
        details: None if the data are missing.
        missing: Why they are.
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
    rehearsing: str
    names: Sequence[GroupName]
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
        """Whether the pool is like the labelled inputs; if not, confidence may be too high."""
        return self.forecast is None or self.forecast.apart == 1.0

    @property
    def doubtful_names(self) -> list[GroupName]:
        """The names to check, the worst first."""
        return [name for name in self.names if name.doubtful]

    @property
    def figures(self) -> list[tuple[str, float | None]]:
        """The titles and values of the metrics to show."""
        if self.metrics is None:
            return []
        return [(TITLES[name], getattr(self.metrics, name)) for name in FIGURES[self.metrics.setting]]

    @cached_property
    def candidates(self) -> list[str]:
        """All candidates."""
        return [*self.unseen, *self.seen]

    @cached_property
    def least_safe(self) -> float:
        """The least confidence of safe labels; infinite if none are safe.

        Safe labels are those of `--min-accuracy 0.95` without doubtful ones, which always need a check.
        """
        sure = np.array([math.nan if image.confidence is None else image.confidence for image in self.images])
        return max(threshold(sure, SURE), LIKELY)

    @cached_property
    def safe(self) -> list[ReportedImage]:
        """The inputs with safe labels."""
        return [i for i in self.images if i.confidence is not None and i.confidence >= self.least_safe]

    @property
    def safe_right(self) -> float | None:
        """The share of right labels among the safe ones, by the answers."""
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
