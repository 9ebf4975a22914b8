"""Fit again in the background while a person goes on answering: labels first, then the forecast."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pren.foundation.errors import PrenError
from pren.label.result import RunResult
from pren.problem import UNKNOWN, Answers, Problem
from pren.runs.fit import fit
from pren.store.config import RunConfig
from pren.trust import Trust

log = logging.getLogger(__name__)

Doing = Literal["nothing", "labels", "forecast", "failed"]


@dataclass(frozen=True)
class Refit:
    """A fit that is done.

    Attributes:
        result: With its data.
        position: The last entry of the journal that it has learned from.
        trust: That of the fit before, if this one was not rehearsed.
    """

    result: RunResult
    position: int
    trust: Trust | None


def quick_settings(config: RunConfig, trust: Trust | None) -> dict[str, Any]:
    """The settings of a fit without rehearsals, whose labels are trusted as those before; none if they cannot be."""
    needed = config.setting == "gzsl" or config.min_accuracy is not None  # rehearsals choose γ there
    return {} if trust is None or needed else {"rehearsals": 0}


def with_given(problem: Problem, answers: Answers, labels: Iterable[tuple[str, str]]) -> Problem:
    """A problem with the labels that a person gives to photographs.

    Labels of classes that are no candidates, such as seen ones in ZSL, are left out here. In the run that the review
    writes, such photographs are labelled ones.
    """
    assert answers.names is not None
    place = {name: place for place, name in enumerate(answers.names)}
    row = {name: row for row, name in enumerate(problem.classes.names)}
    able, given = problem.candidates(), np.full(len(problem.pool), UNKNOWN)
    for file, name in labels:
        if file in place and name in row and able[row[name]]:
            given[place[file]] = row[name]
    return replace(problem, given=given if (given != UNKNOWN).any() else None)


class Refitter:
    """Fits in a thread whenever there are new answers, in memory.

    Args:
        config: The settings of the run.
        trust: How far the labels of that run are trusted.
        told: Gives the problem with all labels so far, its answers, and the last entry of the journal.
        on_fit: Called with every fit that is done.
        on_change: Called when `doing` changes.
    """

    def __init__(
        self,
        config: RunConfig,
        trust: Trust | None,
        told: Callable[[], tuple[Problem, Answers, int]],
        on_fit: Callable[[Refit], None],
        on_change: Callable[[], None],
    ) -> None:
        self.doing: Doing = "nothing"
        self.failure = ""
        self._config, self._trust = config, trust
        self._told, self._on_fit, self._on_change = told, on_fit, on_change
        self._wanted, self._ending, self._other_classes = threading.Event(), False, False
        self._thread = threading.Thread(target=self._work, name="refit", daemon=True)

    def start(self) -> None:
        """Begin to wait for answers."""
        self._thread.start()

    def want(self, *, other_classes: bool = False) -> None:
        """There are new answers, or other classes, for which the old trust does not hold."""
        self._other_classes |= other_classes
        self._wanted.set()

    def end(self, patience: float = 30.0) -> None:
        """Start no other fit, and wait for the one under way for some seconds."""
        self._ending = True
        self._wanted.set()
        self._thread.join(patience)

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._ending:
                return
            try:
                self._fit()
            except PrenError as error:
                self._say("failed", str(error))
            except Exception:  # a defect of ours must not end the review: answers are kept all the same
                log.exception("Fitting again failed.")
                self._say("failed", "pren has a defect: its log says more.")
            else:
                self._say("nothing")

    def _fit(self) -> None:
        problem, answers, position = self._told()
        config, other = self._config, self._other_classes
        settings: dict[str, Any] = {"method": config.method, "params": config.params, "report": False}
        quick = {} if other else quick_settings(config, self._trust)
        if quick:  # labels at once
            self._say("labels")
            self._on_fit(Refit(fit((problem, answers), **settings, **quick), position, self._trust))
            if self._wanted.is_set():
                return  # newer answers come first
        self._say("forecast")
        settings |= {"rehearsals": config.rehearsals, "min_accuracy": config.min_accuracy}
        result = fit((problem, answers), **settings)
        assert result.outcome is not None
        self._trust, self._other_classes = result.outcome.trust, False
        self._on_fit(Refit(result, position, None))

    def _say(self, doing: Doing, failure: str = "") -> None:
        self.doing, self.failure = doing, failure
        self._on_change()
