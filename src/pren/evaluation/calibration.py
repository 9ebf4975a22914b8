"""Calibrated stacking: u and s when γ is subtracted from the scores of the seen classes.

An input goes to its best seen class while γ is below its gap (the best seen score minus the best unseen one), and to
its best unseen class otherwise. So one sort of the gaps and two cumulative sums give the whole trade-off of u and s.
The area under it (AUSUC) does not depend on γ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import auc

from pren.core.pseudo import best_candidate
from pren.foundation.errors import PrenError
from pren.problem import Answers, ClassTable

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """u and s as step functions of γ.

    Attributes:
        gaps: (T,) where they change, strictly rising.
        u: (T + 1,) Top-1 on inputs of unseen classes for γ below gaps[0], ..., above gaps[-1]; never falls.
        s: (T + 1,) Top-1 on inputs of seen classes; never rises.
    """

    gaps: Vector
    u: Vector
    s: Vector

    def area(self) -> float:
        """AUSUC, by the trapezoid rule."""
        return min(1.0, float(auc(self.u, self.s)))

    def h_at(self, gammas: Vector) -> Vector:
        """The harmonic mean of u and s for each γ, 0 where both are 0."""
        level = np.searchsorted(self.gaps, gammas, side="right")
        u, s = self.u[level], self.s[level]
        return np.divide(2 * u * s, u + s, out=np.zeros(len(gammas)), where=u + s > 0)


class Sides(NamedTuple):
    """The best seen and the best unseen class of each of n inputs; the trade-off needs no more.

    Attributes:
        as_seen: (n,) rows of the class table.
        as_unseen: (n,) rows of the class table.
        gaps: (n,) the score of the seen class minus that of the unseen one.
        finite: (n,) whether all scores of an input are finite.
    """

    as_seen: NDArray[np.int64]
    as_unseen: NDArray[np.int64]
    gaps: Vector
    finite: NDArray[np.bool_]

    @classmethod
    def of(cls, scores: Vector, classes: ClassTable) -> Sides:
        """Read scores (n, L) of L classes."""
        as_seen, as_unseen = best_candidate(scores, classes.seen), best_candidate(scores, classes.unseen)
        rows, finite = np.arange(len(scores)), np.asarray(np.isfinite(scores).all(axis=1))
        with np.errstate(invalid="ignore"):  # scores may be infinite
            return cls(as_seen, as_unseen, scores[rows, as_seen] - scores[rows, as_unseen], finite)


def trade_off(scores: Vector, answers: Answers, classes: ClassTable) -> Curve | None:
    """The curve of generalised zero-shot learning.

    Args:
        scores: (N, L); a γ that they already contain only moves the gaps.
        answers: The labels of the N inputs; those that are `UNKNOWN` are left out.
        classes: The L classes.

    Returns:
        None if there is no input of a seen class, or none of an unseen class, or if scores are infinite.
    """
    return trade_off_of(Sides.of(scores, classes), answers, classes)


def trade_off_of(sides: Sides, answers: Answers, classes: ClassTable) -> Curve | None:
    """`trade_off` from the best classes."""
    known = answers.known
    labels, as_seen, as_unseen = answers.labels[known], sides.as_seen[known], sides.as_unseen[known]
    is_seen = classes.seen[labels]
    if is_seen.all() or not is_seen.any() or not sides.finite[known].all():
        return None
    gaps, place = np.unique(sides.gaps[known], return_inverse=True)
    # u and s are means over classes, so an input of a large class counts less.
    sizes = np.bincount(labels, minlength=len(classes))
    present = np.where(is_seen, (sizes[classes.seen] > 0).sum(), (sizes[classes.unseen] > 0).sum())
    weight = 1 / (sizes[labels] * present)
    gained = np.bincount(place, weight * (as_unseen == labels), minlength=len(gaps))
    lost = np.bincount(place, weight * (as_seen == labels), minlength=len(gaps))
    return Curve(
        gaps=gaps,
        u=np.minimum(np.append(0.0, np.cumsum(gained)), 1.0),
        s=np.minimum(np.append(np.cumsum(lost[::-1])[::-1], 0.0), 1.0),
    )


def best_gamma(curves: Sequence[Curve]) -> tuple[float, float]:
    """The γ with the highest mean H over several curves (validation folds).

    H changes only at gaps, so it tries one γ between each two neighbours. Of equally good ones it takes the nearest to
    0.

    Returns:
        γ, and the mean H that it gives.
    """
    if not curves:
        raise PrenError("gamma-no-trade-off", "gamma cannot be chosen: no fold has both seen and unseen classes.")
    gaps = np.unique(np.concatenate([curve.gaps for curve in curves]))
    beyond = max(1.0, float(gaps[-1] - gaps[0]))
    gammas = np.concatenate([[gaps[0] - beyond], (gaps[:-1] + gaps[1:]) / 2, [gaps[-1] + beyond]])
    h = np.mean([curve.h_at(gammas) for curve in curves], axis=0)
    best = np.flatnonzero(h >= h.max() - 1e-12)  # the order of a sum must not decide
    chosen = best[np.abs(gammas[best]).argmin()]
    return float(gammas[chosen]), float(h[chosen])
