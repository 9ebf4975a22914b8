"""Whether confidence can be believed: calibration error, and precision against coverage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

BINS = 10
COVERAGES = np.linspace(0.1, 1.0, 10)


class Point(BaseModel):
    """Of the surest labels, a share of `coverage` of all, `precision` are right; the least sure of them is so sure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    coverage: float
    precision: float
    confidence: float


class Reliability(BaseModel):
    """How far confidence is from the truth.

    Attributes:
        ece: Expected calibration error: labels in ten bins of equal width by their confidence, the difference of mean
            confidence and share of right labels in each, in the mean over labels.
        curve: Precision against coverage, the surest labels first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ece: float
    curve: tuple[Point, ...]


def reliability(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> Reliability | None:
    """Compare confidence (N,) with whether labels were right (N,); None if nobody knows how sure any label is."""
    known = np.isfinite(confidence)
    confidence, right = confidence[known], right[known]
    if not len(confidence):
        return None
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    differences = np.bincount(bins, confidence - right, minlength=BINS)
    order = np.argsort(-confidence, kind="stable")
    sure, precision = confidence[order], np.cumsum(right[order]) / np.arange(1, len(right) + 1)
    places = np.maximum(np.ceil(COVERAGES * len(right) - 1e-9).astype(np.int64), 1) - 1
    return Reliability(
        ece=float(np.abs(differences).sum() / len(right)),
        curve=tuple(
            Point(coverage=float(share), precision=float(precision[place]), confidence=float(sure[place]))
            for share, place in zip(COVERAGES, places, strict=True)
        ),
    )
