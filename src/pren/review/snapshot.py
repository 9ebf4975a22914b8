"""One fit as the page needs it: what holds of every photograph and of every group, by number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pren.label.names import GroupName
from pren.label.outcome import Outcome
from pren.label.predictor import Predictor
from pren.label.result import RunResult
from pren.label.suggest import suggest_places
from pren.problem import UNKNOWN, ClassTable, candidates_of
from pren.trust import STRANGE, Trust

LIKELIEST = 5  # classes of a photograph, on the keys 1 to 5
FIRST = 40  # photographs that are asked for by what they would teach; the rest by doubt

Vector = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What one fit says of N photographs, numbered as the review numbers them.

    Attributes:
        position: The last entry of the journal that it has learned from.
        table: The classes.
        candidates: (C,) the classes that a photograph of the pool may have.
        labels: (N,) classes; `UNKNOWN` where there is none.
        scores: (N,) of the labels.
        confidence: (N,) NaN where it is not known.
        familiarity: (N,) NaN where it is not known.
        likely: (N, 5) classes, the likeliest first; `UNKNOWN` where there are fewer.
        queue: (Q,) photographs to ask about, the best question first.
        names: How sure the names of groups are.
        forecast: The range of the share of right labels, in whole per cent; None if it is not known.
        sentence: The forecast for people; "" if there is none.
    """

    position: int
    table: ClassTable
    candidates: Places
    labels: Places
    scores: Vector
    confidence: Vector
    familiarity: Vector
    likely: Places
    queue: Places
    names: dict[str, GroupName]
    forecast: tuple[int, int] | None
    sentence: str

    @classmethod
    def of(cls, result: RunResult, files: Sequence[str], position: int, trust: Trust | None = None) -> Snapshot:
        """What a result says.

        Args:
            result: With its data.
            files: The names of all photographs.
            position: The last entry of the journal that it has learned from.
            trust: That of an earlier fit, if the result was not rehearsed.
        """
        outcome = result.outcome
        assert outcome is not None
        old = outcome.trust is None and trust is not None
        if old:
            outcome = Outcome.of(outcome.method, outcome.problem, outcome.answers, trust)
        problem, found = outcome.problem, outcome.labels
        table, count = problem.classes, len(files)
        pool = _places(outcome, files)
        labels = np.full(count, UNKNOWN)
        scores, confidence, familiarity = (np.full(count, np.nan) for _ in range(3))
        labels[pool], scores[pool] = found.classes, found.scores
        confidence[pool], familiarity[pool] = found.confidence, found.familiarity
        likely = np.full((count, LIKELIEST), UNKNOWN)
        best = Predictor(outcome.method, trust=None).label(problem.pool, LIKELIEST).classes
        likely[pool, : best.shape[1]] = best
        forecast = None if old or result.forecast is None else result.forecast
        asked = suggest_places(outcome, outcome.method.embed(problem.pool), FIRST)
        return cls(
            position=position,
            table=table,
            candidates=np.flatnonzero(table.among(candidates_of(problem.setting))),
            labels=labels,
            scores=scores,
            confidence=confidence,
            familiarity=familiarity,
            likely=likely,
            queue=_queue(pool[asked], pool, scores, confidence),
            names={group.name: group for group in result.names},
            forecast=None if forecast is None else forecast.percent(),
            sentence="" if forecast is None else forecast.sentence(),
        )

    def members(self, row: int) -> Places:
        """The photographs of a group, the surest first."""
        members = np.flatnonzero(self.labels == row)
        sure = np.nan_to_num(self.confidence[members], nan=-1.0)
        return members[np.lexsort((-np.nan_to_num(self.scores[members], nan=-math.inf), -sure))]

    def strange(self, place: int) -> bool:
        """Whether a photograph is like none of the classes."""
        return bool(self.familiarity[place] < STRANGE)


def _places(outcome: Outcome, files: Sequence[str]) -> Places:
    """(N_pool,) the number of each photograph of the pool."""
    assert outcome.answers is not None
    assert outcome.answers.names is not None
    at = {name: place for place, name in enumerate(files)}
    return np.array([at[name] for name in outcome.answers.names], dtype=np.int64)


def _queue(first: Places, pool: Places, scores: Vector, confidence: Vector) -> Places:
    rest = np.setdiff1d(pool, first)
    sure = np.nan_to_num(confidence[rest], nan=0.0)
    return np.concatenate([first, rest[np.lexsort((scores[rest], sure))]])
