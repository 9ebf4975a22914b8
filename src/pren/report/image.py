"""An input of the pool in a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from pren.trust import STRANGE
from pren.trust.confidence import LIKELY


@dataclass(frozen=True, slots=True)  # there may be millions
class ReportedImage:
    """An input of the pool.

    Attributes:
        place: In the pool; -1 if the data are missing.
        name: Its file, or its place if it has none.
        label: Its label.
        runner_up: The second-best class; "" if unknown.
        confidence: From 0 to 1; None if unknown.
        familiarity: From 0 to 1; None if unknown.
        lead: The score of the label minus that of the runner-up; orders labels without confidence.
        truth: Its class by the answers; "" if unknown.
        given: Whether the user gave the label.
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
        """Whether the label is wrong by the answers."""
        return bool(self.truth) and self.truth != self.label

    @property
    def doubtful(self) -> bool:
        """Whether the label is doubtful."""
        return self.confidence is not None and self.confidence < LIKELY

    @property
    def strange(self) -> bool:
        """Whether it is like none of the classes."""
        return self.familiarity is not None and self.familiarity < STRANGE


def mean_confidence(images: Sequence[ReportedImage]) -> float | None:
    """The mean of known confidences; None if none is known."""
    known = [image.confidence for image in images if image.confidence is not None]
    return fmean(known) if known else None


def share_right(images: Sequence[ReportedImage]) -> float | None:
    """The share of right labels by the answers; None if no answer is known."""
    known = [image for image in images if image.truth]
    return fmean(not image.wrong for image in known) if known else None
