"""Say which inputs of a pool are copies: of each other, or of labelled ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np

from pren.foundation.errors import quoted
from pren.problem import Answers, Problem
from pren.problem.copies import labelled_twins, twins_in

log = logging.getLogger(__name__)

SHOWN = 5  # copies that a message names


def tell_copies(problem: Problem, answers: Answers | None) -> None:
    """Warn of copies in the pool, with their files."""
    names = None if answers is None else answers.names

    def file(place: int) -> str:
        return f"input {place}" if names is None else quoted(names[place])

    twins, labelled = twins_in(problem), labelled_twins(problem)
    copies, known = np.flatnonzero(twins != np.arange(len(twins))), np.flatnonzero(labelled >= 0)
    if len(copies):
        log.warning(
            "%d of %d inputs of the pool are the same as others, or nearly; they count once and get one label: %s.",
            len(copies),
            len(twins),
            _some(f"{file(place)} is like {file(twins[place])}" for place in copies.tolist()),
        )
    if len(known):
        advice = "" if problem.setting == "gzsl" else " None of their labels can be right: remove them from the pool."
        log.warning(
            "%d of %d inputs of the pool are the same as labelled ones, or nearly: %s.%s",
            len(known),
            len(twins),
            _some(
                f"{file(place)} (of class {quoted(problem.classes.names[problem.labels[labelled[place]]])})"
                for place in known.tolist()
            ),
            advice,
        )


def _some(parts: Iterable[str]) -> str:
    listed = list(parts)
    more = len(listed) - SHOWN
    return ", ".join(listed[:SHOWN]) + (f" and {more} more" if more > 0 else "")
