"""Which share of the labels will be right, as a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from scipy.stats import t

from pren.trust.confidence import Confidence, Reading

INSIDE = 0.8  # how often the truth is to lie in the range
USUAL_MISS, WORTH = 0.04, 8  # what a forecast misses by on most data, and how many rehearsals that counts as
MISS_OF_ANOTHER_KIND = 0.1  # where rehearsals can only imitate how the pool lies

Share = Annotated[float, Field(ge=0, le=1)]


class Known(NamedTuple):
    """A pool whose labels are known: what was read off its scores, and whether each label (n,) was right."""

    reading: Reading
    right: NDArray[np.bool_]


class Forecast(BaseModel):
    """What to expect.

    Attributes:
        low: In four of five cases the share of right labels is at least this, or just below.
        high: And at most this.
        expected: The mean confidence of the labels.
        rehearsed: The share of right labels in every rehearsal.
        held_out: How many classes were held out in each.
        apart: How many times farther (squared) the pool is from the labelled images than other classes explain, if it
            is of another kind; else 1.
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
        """A sentence or two for people."""
        low, high = self.percent()
        said = (
            f"Expect {low} to {high} % of these labels to be right, if the unseen classes are as hard as the seen ones "
            f"({len(self.rehearsed)} rehearsals, {self.held_out} seen classes held out in each)."
        )
        if self.apart == 1.0:
            return said
        return f"{said} The unlabelled images look unlike the labelled ones, which makes this less certain."


def foretell(
    reading: Reading, rehearsals: Sequence[Known], held_out: int, apart: float = 1.0, strangers: float = 0.0
) -> Forecast:
    """Foretell how many labels are right: as many as their confidence says.

    That says more than the mean of the rehearsals, because the pool itself has a part in it: where its labels are
    clearer than theirs were, more of them are right. How far it misses is what it misses each rehearsal by, when the
    others foretell that one.

    Args:
        reading: Of the pool.
        rehearsals: Two or more.
        held_out: How many classes were held out in each.
        apart: See `Forecast`.
        strangers: Which share of the images looks like none of the classes, beyond chance.
    """
    expected = (1 - strangers) * _expected(reading, rehearsals)
    misses = [
        float(known.right.mean()) - _expected(known.reading, [*rehearsals[:place], *rehearsals[place + 1 :]])
        for place, known in enumerate(rehearsals)
    ]
    freedom = WORTH + len(misses)
    usual = USUAL_MISS if apart == 1.0 else MISS_OF_ANOTHER_KIND
    spread = np.sqrt((WORTH * usual**2 + np.square(misses).sum()) / freedom)
    half = float(t.ppf(0.5 + INSIDE / 2, freedom) * spread)
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
    # Where no rehearsal has had such labels, nothing is known: they are as good as the others.
    return float(np.clip(np.nanmean(of_all), 0.0, 1.0)) if np.isfinite(of_all).any() else 0.5
