"""How many answers settle the labels: ``python -m benchmarks.answers FIRST LAST [KIND]``.

A simulated person answers truthfully about groups (as ``pren review`` asks), about photographs that ``pren suggest``
names, or about random ones. Draws FIRST to LAST - 1 of `benchmarks.names` (KIND is one of its kinds), and the embedded
numbers. PREN_DATA says where CUB is; without it only the embedded data are used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.names import problems
from benchmarks.tables import Table
from pren.data import load
from pren.label.names import MOST_TO_LOOK_AT
from pren.methods.base import Method
from pren.methods.pren_vote import PrENVote
from pren.problem import UNKNOWN, Problem
from pren.problem.scoring import top_classes
from pren.trust.suggestion import suggest

CHECKS = (0, 5, 10, 20, 40)  # answers
WAYS = ("groups", "photographs", "random")
Numbers = NDArray[np.int64]


class Review:
    """A problem, the classes of its pool, and the labels that a person has given so far."""

    def __init__(self, problem: Problem, truth: Numbers, seed: int) -> None:
        self.problem, self.truth = problem, truth
        self.given = np.full(len(truth), UNKNOWN)
        self.answered: set[int] = set()  # classes whose group was asked about
        self.rng = np.random.default_rng(seed)
        self.fit()

    def fit(self) -> None:
        """Learn from the answers."""
        told = replace(self.problem, given=self.given if (self.given != UNKNOWN).any() else None)
        told._learned.update(self.problem._learned)  # preparation does not use labels of the pool
        self.method: Method = PrENVote().fit(told)
        self.problem._learned.update(told._learned)
        best, values = top_classes(self.method.scores(told.pool), told.classes, "unseen", 2)
        self.labels = np.where(self.given == UNKNOWN, best[:, 0], self.given)
        self.scores, self.lead = values[:, 0], values[:, 0] - values[:, 1]

    def right(self) -> float:
        """Per cent of all photographs, also of those with an answer."""
        return 100 * float((self.labels == self.truth).mean())

    def ask(self, way: str) -> None:
        """One answer."""
        group = self._next_group() if way == "groups" else None
        if group is not None:
            members = np.flatnonzero(self.labels == group)
            shown = members[np.argsort(-self.scores[members], kind="stable")][:MOST_TO_LOOK_AT]
            name = np.bincount(self.truth[shown]).argmax()
            self.answered.add(int(name))
            self.given[shown[self.truth[shown] == name]] = name  # others do not belong, as a person sees
            return
        free = np.flatnonzero(self.given == UNKNOWN)
        if way == "random":
            place = int(self.rng.choice(free))
        else:  # photographs, also when every group has an answer
            known = np.flatnonzero(self.given != UNKNOWN)
            place = int(suggest(self.method.embed(self.problem.pool), -self.lead, 1, known)[0])
        self.given[place] = self.truth[place]

    def _next_group(self) -> int | None:
        """The group with the least certain name that has no answer."""
        shares = self.method.name_shares()
        there = [row for row in np.unique(self.labels).tolist() if not (self.given[self.labels == row] == row).any()]
        if not there:
            return None
        doubt = np.array([1.0 if shares is None else shares[row, row] for row in there])
        return int(there[doubt.argmin()])


def course(problem: Problem, truth: Numbers, way: str) -> list[float]:
    """Per cent right after each of `CHECKS` answers; a fit after every answer, as on the page."""
    review, found = Review(problem, truth, 0), []
    for count in range(max(CHECKS) + 1):
        if count in CHECKS:
            review.fit()
            found.append(review.right())
        if count < max(CHECKS):
            review.ask(way)
            if way != "random" and (count < 12 or count % 4 == 3):  # later questions change little
                review.fit()
    return found


def tried(kind: str, first: int, last: int) -> Iterator[tuple[str, Problem, Numbers]]:
    """Every problem, by its title."""
    embedded, answers = load("numbers-features")
    assert answers is not None
    yield "embedded numbers", embedded, answers.labels
    if "PREN_DATA" in os.environ:
        seen, unseen = map(int, kind.split("+"))
        for draw in range(first, last):
            for description, problem, truth in problems(seen, unseen, draw):
                yield f"CUB {kind}, {description}", problem, truth


def run(kind: str, first: int, last: int) -> Table:
    """The mean course of every kind of problem and question."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for title, problem, truth in tried(kind, first, last):
        for way in WAYS:
            found.setdefault((title, way), []).append(course(problem, truth, way))
            print(title, way, found[title, way][-1], file=sys.stderr, flush=True)
    table = Table("Per cent right after a number of answers", ["problem", "questions about", *map(str, CHECKS)])
    for (title, way), courses in found.items():
        table.rows.append([title, way, *(f"{value:.1f}" for value in np.mean(courses, axis=0))])
    return table


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:3])
    print(run(sys.argv[3] if len(sys.argv) > 3 else "20 + 10", first, last).markdown())
