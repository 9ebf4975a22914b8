"""The expected share of right labels, as a range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from scipy.stats import t

from pren.trust.confidence import Confidence, Reading

INSIDE = 0.8  # how often the truth should lie in the range
USUAL_MISS, WORTH = 0.04, 8  # the usual error of a forecast, and how many rehearsals that counts as
MISS_OF_ANOTHER_KIND = 0.1  # if the pool is of another kind, which rehearsals can only imitate

WITHIN = 0.03  # the ends of a range may move by so much with the draw of the held-out classes
ENDS = 1.4  # how far an end moves where the mean share moves by 1, because the width moves, too
DIGITS = 6  # of what is expected: the last bits depend on the order in which a fit adds

Share = Annotated[float, Field(ge=0, le=1)]


class Known(NamedTuple):
    """A pool with known answers: its reading, and whether each label (n,) is right."""

    reading: Reading
    right: NDArray[np.bool_]


class Forecast(BaseModel):
    """What to expect.

    Attributes:
        low: In four of five cases the share of right labels lies from `low`
        high: to `high`.
        expected: The mean confidence of the labels.
        rehearsed: The share of right labels in every rehearsal.
        held_out: How many classes were held out in each.
        apart: If the pool is of another kind, how many times farther (squared) it is from the labelled inputs than
            other classes explain; else 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    low: Share
    high: Share
    expected: Share
    rehearsed: tuple[Share, ...]
    held_out: int
    apart: float = 1.0

    def percent(self) -> tuple[int, int]:
        """The range in whole per cent, rounded outwards."""
        return int(100 * self.low), min(round(100 * self.high + 0.5), 100)

    def sentence(self) -> str:
        """The forecast for people."""
        low, high = self.percent()
        said = (
            f"Expect {low} to {high} % of these labels to be right, if the unseen classes are as hard as the seen ones "
            f"({len(self.rehearsed)} rehearsals, {self.held_out} seen classes held out in each)."
        )
        if self.apart == 1.0:
            return said
        return f"{said} The pool looks unlike the labelled inputs, so this is less certain."


def unsteady(shares: Sequence[float]) -> float:
    """By how much more than `WITHIN` the ends may move with the draw: twice their standard error.

    Args:
        shares: Of right labels, in two or more rehearsals.
    """
    error = float(np.std(shares, ddof=1)) / math.sqrt(len(shares))
    return max(0.0, 2 * ENDS * error - WITHIN)


def foretell(
    reading: Reading,
    rehearsals: Sequence[Known],
    held_out: int,
    apart: float = 1.0,
    strangers: float = 0.0,
    wider: float = 0.0,
) -> Forecast:
    """Forecast the share of right labels: the mean of their confidence.

    That is better than the mean of the rehearsals, because it depends on the pool: where its labels are clearer, more
    of them are right. The width of the range comes from forecasting each rehearsal with the others.

    Args:
        reading: Of the pool.
        rehearsals: Two or more.
        held_out: How many classes were held out in each.
        apart: See `Forecast`.
        strangers: The share of inputs that look like none of the classes, beyond chance.
        wider: See `unsteady`; 0 if there are no other draws.
    """
    expected = round((1 - strangers) * _expected(reading, rehearsals), DIGITS)
    misses = [
        float(known.right.mean()) - _expected(known.reading, [*rehearsals[:place], *rehearsals[place + 1 :]])
        for place, known in enumerate(rehearsals)
    ]
    freedom = WORTH + len(misses)
    usual = USUAL_MISS if apart == 1.0 else MISS_OF_ANOTHER_KIND
    spread = np.sqrt((WORTH * usual**2 + np.square(misses).sum()) / freedom)
    half = float(t.ppf(0.5 + INSIDE / 2, freedom) * spread) + wider
    return Forecast(
        low=max(expected - half, 0.0),
        high=min(expected + half, 1.0),
        expected=expected,
        rehearsed=tuple(float(known.right.mean()) for known in rehearsals),
        held_out=held_out,
        apart=apart,
    )


def _expected(reading: Reading, rehearsals: Sequence[Known]) -> float:
    confidence = Confidence.learn([known.reading for known in rehearsals], [known.right for known in rehearsals])
    of_all = confidence.of(reading)
    # Labels of a group that no rehearsal had count like the others.
    return float(np.clip(np.nanmean(of_all), 0.0, 1.0)) if np.isfinite(of_all).any() else 0.5
