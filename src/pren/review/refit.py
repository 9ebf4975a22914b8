"""Fit again in the background while a person goes on answering: labels first, then the forecast."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pren.foundation.errors import PrenError
from pren.label.result import RunResult
from pren.runs.fit import fit
from pren.store.config import RunConfig
from pren.store.folder import RunFolder
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


class Refitter:
    """Fits in a thread whenever there are new answers.

    Args:
        run: The run whose settings are used.
        moved: Where data, weights or cache are now, as settings of `pren.fit`.
        trust: How far the labels of that run are trusted.
        position: Of the journal, now.
        on_fit: Called with every fit that is done.
        on_change: Called when `doing` changes.
    """

    def __init__(
        self,
        run: Path,
        moved: dict[str, Any],
        trust: Trust | None,
        position: Callable[[], int],
        on_fit: Callable[[Refit], None],
        on_change: Callable[[], None],
    ) -> None:
        self.doing: Doing = "nothing"
        self.failure = ""
        self._run, self._moved, self._trust = run, moved, trust
        self._position, self._on_fit, self._on_change = position, on_fit, on_change
        self._wanted, self._ending, self._other_classes = threading.Event(), False, False
        self._one_at_a_time = threading.Lock()
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

    def write(self, out: Path) -> RunResult:
        """Fit once more, into an ordinary run folder."""
        with self._one_at_a_time:
            return fit(start=self._run, out=out, **self._moved)

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._ending:
                return
            try:
                with self._one_at_a_time:
                    self._fit()
            except PrenError as error:
                self._say("failed", str(error))
            except Exception:  # a defect of ours must not end the review: answers are kept all the same
                log.exception("Fitting again failed.")
                self._say("failed", "pren has a defect: its log says more.")
            else:
                self._say("nothing")

    def _fit(self) -> None:
        position = self._position()
        quick = quick_settings(RunFolder.open(self._run).config(), self._trust)
        if quick and not self._other_classes:
            self._say("labels")
            result = fit(start=self._run, report=False, **quick, **self._moved)
            self._on_fit(Refit(result, position, self._trust))
            if self._wanted.is_set():
                return  # newer answers come first
        self._say("forecast")
        result = fit(start=self._run, report=False, **self._moved)
        assert result.outcome is not None
        self._trust, self._other_classes = result.outcome.trust, False
        self._on_fit(Refit(result, position, None))

    def _say(self, doing: Doing, failure: str = "") -> None:
        self.doing, self.failure = doing, failure
        self._on_change()
