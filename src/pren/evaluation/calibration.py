"""Calibrated stacking: what becomes of u and s when γ is taken off the scores of the seen classes.

An image goes to its best seen class while γ is below its gap (the best seen score minus the best unseen one), and to
its best unseen class from there on. So one sort of the gaps and two cumulative sums give the whole trade-off of u
and s; the area under it (AUSUC) judges a method without a choice of γ.
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
    """u and s as functions of γ: steps, with one more level than there are gaps.

    Attributes:
        gaps: (T,) where they change, rising, all different.
        u: (T + 1,) Top-1 on images of unseen classes while γ is below gaps[0], ..., above gaps[-1]; never falls.
        s: (T + 1,) Top-1 on images of seen classes; never rises.
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
    """The best seen and the best unseen class of each of n images, all that the trade-off depends on.

    Attributes:
        as_seen: (n,) rows of the class table.
        as_unseen: (n,) the same.
        gaps: (n,) how far the score of the one is above that of the other.
        finite: (n,) whether all scores of an image are.
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
        with np.errstate(invalid="ignore"):  # of scores that are not finite
            return cls(as_seen, as_unseen, scores[rows, as_seen] - scores[rows, as_unseen], finite)


def trade_off(scores: Vector, answers: Answers, classes: ClassTable) -> Curve | None:
    """The curve of generalised zero-shot learning.

    Args:
        scores: (N, L); a γ that they already contain moves the gaps and nothing else.
        answers: The labels of the N images; those that are `UNKNOWN` are left out.
        classes: The L classes.

    Returns:
        None where there is no such curve: no image of a seen class, none of an unseen class, or infinite scores.
    """
    return trade_off_of(Sides.of(scores, classes), answers, classes)


def trade_off_of(sides: Sides, answers: Answers, classes: ClassTable) -> Curve | None:
    """The same from what was read off the scores."""
    known = answers.known
    labels, as_seen, as_unseen = answers.labels[known], sides.as_seen[known], sides.as_unseen[known]
    is_seen = classes.seen[labels]
    if is_seen.all() or not is_seen.any() or not sides.finite[known].all():
        return None
    gaps, place = np.unique(sides.gaps[known], return_inverse=True)
    # What an image adds to a mean over classes of the share within each.
    images = np.bincount(labels, minlength=len(classes))
    present = np.where(is_seen, (images[classes.seen] > 0).sum(), (images[classes.unseen] > 0).sum())
    weight = 1 / (images[labels] * present)
    gained = np.bincount(place, weight * (as_unseen == labels), minlength=len(gaps))
    lost = np.bincount(place, weight * (as_seen == labels), minlength=len(gaps))
    return Curve(
        gaps=gaps,
        u=np.minimum(np.append(0.0, np.cumsum(gained)), 1.0),
        s=np.minimum(np.append(np.cumsum(lost[::-1])[::-1], 0.0), 1.0),
    )


def best_gamma(curves: Sequence[Curve]) -> tuple[float, float]:
    """The γ with the highest mean H over several curves (validation folds).

    H changes only at gaps, so one γ in the middle between each two neighbours is all there is to try. Of equally good
    ones the nearest to 0 is taken.

    Returns:
        γ, and the mean H that it gives.
    """
    if not curves:
        raise PrenError("gamma-no-trade-off", "There is no trade-off of seen and unseen classes to choose gamma from.")
    gaps = np.unique(np.concatenate([curve.gaps for curve in curves]))
    beyond = max(1.0, float(gaps[-1] - gaps[0]))
    gammas = np.concatenate([[gaps[0] - beyond], (gaps[:-1] + gaps[1:]) / 2, [gaps[-1] + beyond]])
    h = np.mean([curve.h_at(gammas) for curve in curves], axis=0)
    best = np.flatnonzero(h >= h.max() - 1e-12)  # sums in another order are no reason to prefer one
    chosen = best[np.abs(gammas[best]).argmin()]
    return float(gammas[chosen]), float(h[chosen])
