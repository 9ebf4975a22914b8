"""Confidence: from the lead of a label, in scores without a unit, to the share of such labels that are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from torch import Tensor, nn

from pren.core.pseudo import best_candidate
from pren.methods.formulas import Formula, Sides, count_below, on_arrays
from pren.problem import ClassTable

Vector = NDArray[np.float64]
SURE: Final = 0.95  # the least confidence of a label that is called sure, and the share of safe labels that is right
LIKELY: Final = 0.5  # of one that is called likely; below it, a label is doubtful
MOST: Final = 0.999  # only a label that a person has given has a confidence of 1
HUGE = 1e300
ROUNDING = 1e-9
GROUPS = ("unseen", "seen")  # in GZSL a lead means something else for seen classes


class Reading(NamedTuple):
    """Labels from scores, and how clear each is.

    Attributes:
        labels: (n,) the best candidate.
        lead: (n,) its score minus that of the second; 0 if there is no second.
        seen: (n,) whether it is a seen class.
    """

    labels: NDArray[np.int64]
    lead: Vector
    seen: NDArray[np.bool_]

    @classmethod
    def of(cls, scores: Vector, classes: ClassTable, candidates: NDArray[np.bool_]) -> Reading:
        """Read scores (n, L), of candidates (L,) only."""
        labels, lead = best_candidate(scores, candidates), on_arrays(lead_of, scores[:, candidates])
        return cls(labels, lead, classes.seen[labels])

    @classmethod
    def joined(cls, parts: Sequence[Reading]) -> Reading:
        """Concatenate several."""
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def group(self, name: str) -> NDArray[np.bool_]:
        """(n,) which labels are in a group."""
        return self.seen if name == "seen" else ~self.seen


def lead_of(scores: Tensor) -> Tensor:
    """(n,) how far the largest of scores (n, C) is ahead of the second; 0 if there is no second."""
    if scores.shape[1] == 1:
        return torch.zeros_like(scores[:, 0])
    first, second = scores.topk(2, dim=1).values.unbind(dim=1)
    return torch.nan_to_num(first - second, nan=0.0, posinf=HUGE)  # a method may score some classes -inf


class Steps(Formula):
    """The share of right labels by lead, with straight lines between known leads.

    Args:
        leads: (k,) rising.
        shares: (k,) never falling.
    """

    learns: ClassVar[Sides] = {"leads": ("k",), "shares": ("k",)}

    leads: Tensor
    shares: Tensor

    def forward(self, lead: Tensor) -> Tensor:
        """(n,) -> (n,), as `np.interp` does."""
        after = count_below(self.leads, lead, equal=True)
        low, high = (after - 1).clamp(min=0), after.clamp(max=len(self.leads) - 1)
        gap = self.leads[high] - self.leads[low]
        share = torch.where(gap > 0, (lead - self.leads[low]) / torch.where(gap > 0, gap, 1.0), 0.0)
        return self.shares[low] + share * (self.shares[high] - self.shares[low])


class Confidence(nn.Module):
    """The share of labels that are right, as a function of their lead, for each group of labels.

    Args:
        steps: By group; the confidence of labels in other groups is NaN.
    """

    def __init__(self, steps: Mapping[str, Steps]) -> None:
        super().__init__()
        self.steps: Mapping[str, Steps] = nn.ModuleDict(steps)  # type: ignore[assignment]  # it is a mapping

    def forward(self, lead: Tensor, seen: Tensor) -> Tensor:
        """(n,) from 0 to 1, from leads (n,) and whether labels are seen classes (n,)."""
        unknown = torch.full_like(lead, torch.nan)
        of_unseen, of_seen = (self.steps[name](lead) if name in self.steps else unknown for name in GROUPS)
        return torch.where(seen, of_seen, of_unseen).clamp(max=MOST)

    def of(self, reading: Reading) -> Vector:
        """(n,) from 0 to 1."""
        return on_arrays(self, reading.lead, reading.seen)

    @classmethod
    def learn(cls, readings: Sequence[Reading], right: Sequence[NDArray[np.bool_]]) -> Confidence:
        """Learn it by isotonic regression from several pools with known answers.

        Args:
            readings: Of each pool.
            right: (n_i,) whether each label is right.
        """
        steps = {}
        for name in GROUPS:
            parts = [reading.group(name) for reading in readings]
            lead = np.concatenate([reading.lead[part] for reading, part in zip(readings, parts, strict=True)])
            if not len(lead):
                continue
            truth = np.concatenate([known[part] for known, part in zip(right, parts, strict=True)])
            # Every pool counts the same: more inputs say no more about classes.
            weights = np.concatenate([np.full(part.sum(), 1 / len(part)) for part in parts])
            fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(lead, truth.astype(np.float64), weights)
            steps[name] = Steps(leads=fitted.X_thresholds_, shares=fitted.y_thresholds_)
        return cls(steps)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: {part: array.tolist() for part, array in steps.arrays.items()} for name, steps in self.steps.items()
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Confidence:
        """The inverse of `to_dict`.

        Raises:
            ValueError: If the content is not from `to_dict`. (LookupError and TypeError mean the same.)
        """
        steps = {}
        for name, known in content.items():
            leads, shares = (np.array(known[part], dtype=np.float64) for part in Steps.learns)
            if name not in GROUPS or leads.ndim != 1 or leads.shape != shares.shape or not len(leads):
                raise ValueError("the confidence has no such steps")
            if not (np.isfinite(leads).all() and (np.diff(leads) >= 0).all()):
                raise ValueError("the leads of the confidence do not rise")
            if not ((shares >= 0).all() and (shares <= 1).all() and (np.diff(shares) >= 0).all()):
                raise ValueError("the shares of the confidence fall, or are not from 0 to 1")
            steps[name] = Steps(leads=leads, shares=shares)
        return cls(steps)


def threshold(confidence: Vector, precision: float) -> float:
    """The least confidence so that, of the labels that reach it, a share of `precision` is right.

    Args:
        confidence: (N,) of the labels to choose from, NaN where it is not known.
        precision: From 0 to 1.

    Returns:
        A value of `confidence`; infinite if no labels are sure enough.
    """
    values, counts = np.unique(confidence[np.isfinite(confidence)], return_counts=True)
    values, counts = values[::-1], counts[::-1]
    expected = np.cumsum(values * counts) / np.cumsum(counts)  # never rises: the surest come first
    enough = np.flatnonzero(expected >= precision - ROUNDING)
    return float(values[enough[-1]]) if len(enough) else float("inf")


class LevelCounts(NamedTuple):
    """How many labels are of each level."""

    sure: int
    likely: int
    doubtful: int
