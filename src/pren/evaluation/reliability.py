"""How reliable confidence is: calibration error, and precision against coverage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

BINS = 10
COVERAGES = np.linspace(0.1, 1.0, 10)


class Point(BaseModel):
    """Of the surest share `coverage` of labels, `precision` are right; the least sure has this `confidence`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    coverage: float
    precision: float
    confidence: float


class Reliability(BaseModel):
    """How far confidence is from the truth.

    Attributes:
        ece: Expected calibration error: |mean confidence - share of right labels| in ten bins of equal width, averaged
            over labels.
        curve: Precision against coverage, the surest labels first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ece: float
    curve: tuple[Point, ...]


def reliability(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> Reliability | None:
    """Compare confidence (N,) with whether labels are right (N,); None if no confidence is known."""
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
