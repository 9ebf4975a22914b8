"""The expected share of right labels, as a range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from scipy.special import expit, logit
from scipy.stats import t

from pren.foundation.seeds import stream
from pren.trust.confidence import MOST, Confidence, Reading
from pren.trust.corrections import Corrections
from pren.trust.names import SPREAD, Names

INSIDE = 0.8  # how often the truth should lie in the range
USUAL_MISS, WORTH = 0.04, 8  # the usual error of a forecast, and how many rehearsals that counts as
MISS_OF_ANOTHER_KIND = 0.1  # if the pool is of another kind, which rehearsals can only imitate
KIND = 0.7  # what such a pool adds to `SPREAD`
DRAWS = 4000
USELESS = 0.6  # a wider range says nothing

WITHIN = 0.03  # the ends of a range may move by so much with the draw of the held-out classes
ENDS = 1.4  # how far an end moves where the mean share moves by 1, because the width moves, too
DIGITS = 6  # of what is expected: the last bits depend on the order in which a fit adds

Share = Annotated[float, Field(ge=0, le=1)]


class Known(NamedTuple):
    """A pool with known answers: its reading, whether each label (n,) is right, and whether its place (n,) is."""

    reading: Reading
    right: NDArray[np.bool_]
    placed: NDArray[np.bool_]


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
        names: How many groups have a name that was chosen.
        doubtful: How many of these names are to be checked.
        corrections: What labels of a person have shown; None if there are none, or the method chooses no names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    low: Share
    high: Share
    expected: Share
    rehearsed: tuple[Share, ...]
    held_out: int
    apart: float = 1.0
    names: int = 0
    doubtful: int = 0
    corrections: Corrections | None = None

    @property
    def useless(self) -> bool:
        """Whether the range is so wide that it is no forecast."""
        return self.high - self.low > USELESS

    def percent(self) -> tuple[int, int]:
        """The range in whole per cent, rounded outwards."""
        return int(100 * self.low), min(round(100 * self.high + 0.5), 100)

    def sentence(self) -> str:
        """The forecast for people."""
        low, high = self.percent()
        unlike = self.apart != 1.0
        in_doubt = f"{self.doubtful} of {self.names} names of groups {'is' if self.doubtful == 1 else 'are'} in doubt"
        rehearsed = f"{len(self.rehearsed)} rehearsals, {self.held_out} seen classes held out in each"
        if self.useless:
            reasons = [in_doubt] if self.doubtful else []
            reasons += ["the pool looks unlike the labelled inputs"] if unlike else []
            why = " and ".join(reasons) or "rehearsals differ too much"
            return (
                f"No forecast is possible, because {why}: between {low} and {high} % of these labels may be right "
                f"({rehearsed})."
            )
        said = (
            f"Expect {low} to {high} % of these labels to be right, if the unseen classes are as hard as the seen ones "
            f"({rehearsed})."
        )
        if self.doubtful:
            said += f" {in_doubt[0].upper()}{in_doubt[1:]}: check them first."
        return f"{said} The pool looks unlike the labelled inputs, so this is less certain." if unlike else said


def unsteady(shares: Sequence[float]) -> float:
    """By how much more than `WITHIN` the ends may move with the draw: twice their standard error.

    Args:
        shares: Of labels that are right, or would be under other names of groups, in two or more rehearsals.
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
    names: Names | None = None,
    corrections: Corrections | None = None,
) -> Forecast:
    """Forecast the share of right labels: the mean of their confidence.

    That is better than the mean of the rehearsals, because it depends on the pool: where its labels are clearer, more
    of them are right. The width of the range comes from forecasting each rehearsal with the others. Where names are in
    doubt, they are drawn: each group has the right one with its certainty.

    Args:
        reading: Of the pool.
        rehearsals: Two or more.
        held_out: How many classes were held out in each.
        apart: See `Forecast`.
        strangers: The share of inputs that look like none of the classes, beyond chance.
        wider: See `unsteady`; 0 if there are no other draws.
        names: Of the groups; None if the method chooses no names.
        corrections: See `Forecast`; they are in the names already.
    """
    of_all = (1 - strangers) * _places(reading, rehearsals)
    misses = [
        float(known.placed.mean())
        - float(_places(known.reading, [*rehearsals[:place], *rehearsals[place + 1 :]]).mean())
        for place, known in enumerate(rehearsals)
    ]
    freedom = WORTH + len(misses)
    usual = USUAL_MISS if apart == 1.0 else MISS_OF_ANOTHER_KIND
    spread = float(np.sqrt((WORTH * usual**2 + np.square(misses).sum()) / freedom))
    certainty = None if names is None else names.certainty()
    if names is None or certainty is None:
        expected = round(float(of_all.mean()), DIGITS)
        half = float(t.ppf(0.5 + INSIDE / 2, freedom) * spread) + wider
        low, high = expected - half, expected + half
    else:
        weights = np.bincount(reading.labels, of_all, minlength=len(certainty)) / len(of_all)
        expected = round(float(weights @ certainty), DIGITS)
        low, high = range_of(weights, certainty, spread, freedom, SPREAD + (KIND if apart != 1.0 else 0.0))
        if apart != 1.0:  # what has come from elsewhere may have run together, whatever its names
            low *= 1 - names.crowded
        low, high = min(low, expected) - wider, max(high, expected) + wider
    return Forecast(
        low=max(low, 0.0),
        high=min(high, 1.0),
        expected=expected,
        rehearsed=tuple(float(known.right.mean()) for known in rehearsals),
        held_out=held_out,
        apart=apart,
        names=0 if names is None else int(names.there.sum()),
        doubtful=0 if names is None else int(names.to_check().sum()),
        corrections=corrections,
    )


def range_of(
    weights: NDArray[np.float64], certainty: NDArray[np.float64], spread: float, freedom: float, together: float
) -> tuple[float, float]:
    """Between which shares of right labels four of five draws lie.

    A draw makes all names together surer or less sure, then each group right or wrong, then adds a miss.

    Args:
        weights: (L,) the share of all labels that each group adds if its name is right.
        certainty: (L,) how likely that is.
        spread: The usual miss of the places.
        freedom: Of the misses (Student's t).
        together: The deviation of the logits of all names together.
    """
    rng = stream(0, "names of the forecast")
    settled = certainty == 1
    doubted, sure = np.flatnonzero(~settled), float(weights[settled].sum())
    # What each group draws must not depend on the order of the classes.
    doubted = doubted[np.lexsort((weights[doubted].round(DIGITS), certainty[doubted].round(DIGITS)))]
    moved = logit(np.clip(certainty[doubted], 1 - MOST, MOST)) + together * rng.normal(size=(DRAWS, 1))
    right = rng.random((DRAWS, len(doubted))) < expit(moved)
    shares = sure + right @ weights[doubted] + spread * rng.standard_t(freedom, size=DRAWS)
    low, high = np.quantile(shares, [0.5 - INSIDE / 2, 0.5 + INSIDE / 2])
    return round(float(low), DIGITS), round(float(high), DIGITS)


def _places(reading: Reading, rehearsals: Sequence[Known]) -> NDArray[np.float64]:
    """(n,) the confidence of each label; labels of a group that no rehearsal had count like the others."""
    confidence = Confidence.learn([known.reading for known in rehearsals], [known.placed for known in rehearsals])
    of_all = confidence.of(reading)
    known = np.isfinite(of_all)
    usual = float(np.clip(of_all[known].mean(), 0.0, 1.0)) if known.any() else 0.5
    return np.where(known, of_all, usual)
