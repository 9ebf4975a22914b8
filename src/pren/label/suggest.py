"""Which inputs of a run's pool to label next."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.data.folder.labels import LABELS, read_given
from pren.foundation.errors import PrenError
from pren.label.groups import group_questions
from pren.label.outcome import Outcome
from pren.label.result import RunResult
from pren.problem import UNKNOWN
from pren.trust import STRANGE, suggest

TO_FILL_IN = ("file", "class", "label now", "runner-up")


class Suggestion(NamedTuple):
    """An input to label.

    Attributes:
        input: The name of its file, or its place in the pool if it has none.
        label: Its label now.
        runner_up: The second best class; "" if there is no other.
        confidence: From 0 to 1; None if that is not known.
    """

    input: str
    label: str
    runner_up: str
    confidence: float | None


class Suggestions(NamedTuple):
    """What to label next.

    Attributes:
        inputs: Best first.
        labels: The file for labels in the data; None if the data have none.
    """

    inputs: list[Suggestion]
    labels: Path | None

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The rows of that file, in the columns of `TO_FILL_IN`: known labels, then inputs to fill in."""
        known = [] if self.labels is None else read_given(self.labels.parent)
        return [
            *((file, name, "", "") for file, name in known),
            *((each.input, "", each.label, each.runner_up) for each in self.inputs),
        ]


def suggest_for_run(result: RunResult, count: int) -> Suggestions:
    """Choose the inputs of a run's pool whose labels would help most, without those that the user has labelled.

    Args:
        result: A run with its data.
        count: How many.

    Raises:
        PrenError: If the data are missing, or the pool has held-out labelled inputs.
    """
    if "hold_out" in result.config.options:
        raise PrenError("hold-out", "The pool of this run has labelled inputs: fit again without --hold-out.")
    outcome = result.outcome
    if outcome is None:
        raise PrenError("data-missing", f"The data of this run are missing: {result.missing}")
    problem, answers = outcome.problem, outcome.answers
    names, files = problem.classes.names, None if answers is None else answers.names
    chosen = suggest_places(outcome, outcome.method.embed(problem.pool), count)
    labels = outcome.labels
    inputs = []
    for place in chosen.tolist():
        other, sure = int(labels.runners_up[place]), float(labels.confidence[place])
        inputs.append(
            Suggestion(
                str(place) if files is None else files[place],
                names[labels.classes[place]],
                "" if other == UNKNOWN else names[other],
                None if math.isnan(sure) else sure,
            )
        )
    own = problem.source.get("name") == "folder"
    return Suggestions(inputs, Path(result.config.data) / LABELS if own else None)


def suggest_places(outcome: Outcome, features: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The same as places in the pool, from the method's features (N_pool, d).

    Names come first: one input of each group whose name is in doubt. Its label settles them all, so the others come
    from the rest of the pool.
    """
    problem, labels = outcome.problem, outcome.labels
    groups = group_questions(outcome)[:count]
    given = np.union1d(problem.decided()[0], groups)
    # An input that is like none of the classes has no label.
    asked = np.flatnonzero(~(labels.familiarity < STRANGE))
    others = suggest(features, _doubt(labels.lead, labels.confidence), count - len(groups), given, asked)
    return np.concatenate([groups, others])


def _doubt(lead: NDArray[np.float64], confidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) ranks: larger for less confidence, then for a smaller lead."""
    doubt = np.empty(len(lead))
    doubt[np.lexsort((-lead, -confidence))] = np.arange(len(lead))
    return doubt
