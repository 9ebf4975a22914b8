"""What a report of a run knows: the run's own files, and what its data add while they are there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.problem import UNKNOWN, candidates_of
from pren.problem.inputs import Inputs
from pren.report.evidence import Evidence, describe_apart, evidence
from pren.report.scatter import Map, make_map
from pren.runs.reopening import Outcome
from pren.runs.result import RunResult
from pren.runs.suggest import suggest_places
from pren.trust import STRANGE, Forecast
from pren.trust.confidence import threshold

SAFE = 0.95  # which share of labels is right that are called safe to use
DOUBTFUL = 0.5  # a label is doubtful below
TO_LABEL = 12  # how many photographs are suggested


@dataclass(frozen=True, slots=True)  # there may be millions
class ReportedImage:
    """An image of the pool.

    Attributes:
        place: In the pool; -1 where the data are not there.
        name: Its file, or its place where images have no names.
        label: The class that it is taken for.
        runner_up: The second best; "" if nobody knows.
        confidence: From 0 to 1; None if nobody knows.
        familiarity: From 0 to 1; None if nobody knows.
        lead: How far the label's score is above the second best; tells sure labels from others where nothing else does.
        truth: Its class by the answers; "" if nobody knows.
        given: Whether a person has given the label.
    """

    place: int
    name: str
    label: str
    runner_up: str = ""
    confidence: float | None = None
    familiarity: float | None = None
    lead: float = 0.0
    truth: str = ""
    given: bool = False

    @property
    def wrong(self) -> bool:
        """Whether the answers say so."""
        return bool(self.truth) and self.truth != self.label

    @property
    def doubtful(self) -> bool:
        """Whether the label is."""
        return self.confidence is not None and self.confidence < DOUBTFUL

    @property
    def strange(self) -> bool:
        """Whether it looks like none of the classes."""
        return self.familiarity is not None and self.familiarity < STRANGE


@dataclass(frozen=True, eq=False)
class Details:
    """What only the data tell.

    Attributes:
        inputs: What the pool looks like; None if nobody knows.
        to_label: Places of the images to label next, best first.
        map: Where images and classes lie.
        evidence: Which attributes speak for each class; None where the method has no such thing.
        apart: For two classes, the attributes in which their descriptions differ most.
        labelled: How many images the method has learned from.
    """

    inputs: Inputs | None
    to_label: Sequence[int]
    map: Map
    evidence: Sequence[Evidence] | None
    apart: Mapping[tuple[str, str], Sequence[tuple[str, float, float]]]
    labelled: int


@dataclass(frozen=True, eq=False)
class RunFacts:
    """All that a report of a run is made of.

    Attributes:
        summary: See `run_summary`.
        history: What each round did.
        by_answers: What the answers say of each.
        unseen: The classes nobody labelled, by name.
        seen: The others that an image can be taken for: none in ZSL.
        described: How many seen classes there are.
        images: Those that can be read, the surest first.
        details: None if the data are not there any more.
        missing: Why not.
        way_of_backbone: What was done to the backbone that made the features.
    """

    summary: dict[str, Any]
    history: list[dict[str, Any]]
    by_answers: list[dict[str, float]]
    unseen: list[str]
    seen: list[str]
    described: int
    images: list[ReportedImage]
    details: Details | None
    missing: str = ""
    way_of_backbone: str = ""
    confused: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @cached_property
    def forecast(self) -> Forecast | None:
        """What to expect of the labels; None if nobody knows."""
        found = self.summary["forecast"]
        return None if found is None else Forecast.model_validate(found)

    @property
    def alike(self) -> bool:
        """Whether the pool is of the kind that confidence was learned on; if not, it may be too high."""
        return self.forecast is None or self.forecast.apart == 1.0

    @cached_property
    def candidates(self) -> list[str]:
        """All classes that an image can be taken for."""
        return [*self.unseen, *self.seen]

    @cached_property
    def safe(self) -> tuple[float, list[ReportedImage]]:
        """The least confidence of labels that are safe to use, infinite if none are, and their images.

        As many as `--precision` would leave, but for doubtful ones: these want a look, however sure the others are.
        """
        sure = np.array([math.nan if image.confidence is None else image.confidence for image in self.images])
        least = max(threshold(sure, SAFE), DOUBTFUL)
        return least, [image for image in self.images if image.confidence is not None and image.confidence >= least]

    @cached_property
    def of_class(self) -> dict[str, list[ReportedImage]]:
        """The images of every candidate, the surest first."""
        found: dict[str, list[ReportedImage]] = {name: [] for name in self.candidates}
        for image in self.images:
            found[image.label].append(image)
        return found

    @cached_property
    def sure(self) -> bool:
        """Whether anybody knows how sure labels are."""
        return any(image.confidence is not None for image in self.images)


def collect(result: RunResult) -> RunFacts:
    """What there is to say of a finished run."""
    summary, table, outcome = result.to_dict(), result.labels.table, result.outcome
    names = list(zip(table.names, table.seen, strict=True))
    unseen, seen = (sorted(name for name, has in names if has == wanted) for wanted in (False, True))
    images = _predicted(result) if outcome is None else _labelled(outcome)
    images.sort(key=lambda image: (-1.0 if image.confidence is None else image.confidence, image.lead), reverse=True)
    confused = _confused(images, summary["metrics"])
    options = summary["options"]
    return RunFacts(
        summary=summary,
        history=list(result.history),
        by_answers=list(result.by_answers),
        unseen=unseen,
        seen=seen if candidates_of(result.config.setting) == "all" else [],
        described=len(seen),
        images=images,
        details=None if outcome is None else _details(outcome, images, confused, asks="hold_out" not in options),
        missing=result.missing,
        way_of_backbone="" if result.config.extractor is None else result.way_of_backbone(),
        confused=confused,
    )


def _predicted(result: RunResult) -> list[ReportedImage]:
    rows = [row for row in result.labels.rows() if row.label]
    return [ReportedImage(-1, row.input, row.label, "", row.confidence, row.familiarity) for row in rows]


def _labelled(outcome: Outcome) -> list[ReportedImage]:
    problem, answers, labels = outcome.problem, outcome.answers, outcome.labels
    names = problem.classes.names
    given = set(problem.decided()[0].tolist())
    truths = [-1] * len(labels.classes) if answers is None else answers.labels.tolist()
    files = None if answers is None else answers.names
    images = []
    for place, (row, _, sure, familiar, other, lead, _) in enumerate(
        zip(*(part.tolist() for part in labels), strict=True)
    ):
        images.append(
            ReportedImage(
                place=place,
                name=str(place) if files is None else files[place],
                label=names[row],
                runner_up="" if other == UNKNOWN else names[other],
                confidence=None if math.isnan(sure) else sure,
                familiarity=None if math.isnan(familiar) else familiar,
                lead=lead,
                truth="" if truths[place] < 0 else names[truths[place]],
                given=place in given,
            )
        )
    return images


def _confused(images: Sequence[ReportedImage], metrics: dict[str, Any] | None) -> dict[tuple[str, str], float]:
    """What is taken for what: (class, label) by the answers; else (label, runner-up) and how many are expected."""
    if metrics is not None:
        return {(cell["true"], cell["predicted"]): float(cell["count"]) for cell in metrics["confusion"]}
    found: Counter[tuple[str, str]] = Counter()
    for image in images:
        if image.confidence is not None and image.runner_up and not image.given:
            found[image.label, image.runner_up] += 1 - image.confidence  # type: ignore[assignment]
    return dict(found)


def most_confused(confused: Mapping[tuple[str, str], float], most: int) -> list[tuple[str, str, float]]:
    """Pairs of different classes, both directions together, the most confused first."""
    found: dict[tuple[str, str], float] = {}
    for (one, other), value in confused.items():
        if one != other:
            pair = (min(one, other), max(one, other))
            found[pair] = found.get(pair, 0.0) + value
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [(one, other, value) for (one, other), value in ranked if value >= 0.5][:most]


PAIRS = 6  # of classes that are shown side by side


def _details(
    outcome: Outcome, images: Sequence[ReportedImage], confused: Mapping[tuple[str, str], float], *, asks: bool
) -> Details:
    problem = outcome.problem
    features: NDArray[np.float64] = outcome.method.embed(problem.pool)
    labels = [problem.classes.names[row] for row in outcome.labels.classes.tolist()]
    pictures = None if outcome.answers is None else outcome.answers.pictures
    return Details(
        inputs=problem.pool if pictures is None else pictures,
        to_label=suggest_places(outcome, features, TO_LABEL).tolist() if asks else [],
        map=make_map(features, labels),
        evidence=evidence(outcome),
        apart={(a, b): describe_apart(problem.classes, a, b) for a, b, _ in most_confused(confused, PAIRS)},
        labelled=len(problem.train),
    )
