"""Which images of a run's pool to label next."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.data.folder.labels import LABELS, read_given
from pren.foundation.errors import PrenError
from pren.problem import UNKNOWN
from pren.runs.reopening import Outcome, open_run
from pren.runs.store.folder import RunFolder
from pren.trust import STRANGE, suggest


class Suggestion(NamedTuple):
    """An image to look at.

    Attributes:
        image: The name of its file, or its place in the pool where images have no names.
        label: The class that it has now.
        runner_up: The second best class; "" if there is no other.
        confidence: How sure the label is, from 0 to 1; None if nobody knows.
    """

    image: str
    label: str
    runner_up: str
    confidence: float | None


class Suggestions(NamedTuple):
    """What to label next.

    Attributes:
        images: At most as many as were asked for, best first.
        labels: The file of the data that labels are read from; None if the data have none.
    """

    images: list[Suggestion]
    labels: Path | None

    def rows(self) -> list[tuple[str, str]]:
        """The rows of that file as it should become: what a person has said, and then what is to be filled in."""
        known = [] if self.labels is None else read_given(self.labels.parent)
        return [*known, *((suggestion.image, "") for suggestion in self.images)]


def suggest_for_run(
    folder: RunFolder,
    count: int,
    data: str | None = None,
    root: str | None = None,
    weights: str | None = None,
    cache: str | None = None,
) -> Suggestions:
    """Choose the images of a run's pool whose labels would help most; those that have one already are left out.

    The arguments after `count` are those of `open_run`.

    Raises:
        PrenError: As `open_run`, and if the pool has images whose class is known.
    """
    if "hold_out" in folder.config().options:
        raise PrenError(
            "hold-out",
            f"The pool of {folder.path} has labelled images in it (--hold-out): fit without it, and ask that run.",
        )
    outcome = open_run(folder, data, root, weights, cache)
    problem, answers = outcome.problem, outcome.answers
    names, files = problem.classes.names, None if answers is None else answers.names
    chosen = suggest_places(outcome, outcome.method.embed(problem.pool), count)
    images = []
    for place, (row, _, sure, _, other, _) in zip(
        chosen.tolist(), zip(*(part[chosen].tolist() for part in outcome.labels), strict=True), strict=True
    ):
        image = str(place) if files is None else files[place]
        runner_up = "" if other == UNKNOWN else names[other]
        images.append(Suggestion(image, names[row], runner_up, None if math.isnan(sure) else sure))
    own = problem.source.get("name") == "folder"
    return Suggestions(images, Path(data or folder.config().data) / LABELS if own else None)


def suggest_places(outcome: Outcome, features: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The same as places in the pool, from its features (N_pool, d) as the method sees them."""
    problem, labels = outcome.problem, outcome.labels
    given = problem.decided()[0]
    # Nobody can name the class of what looks like none of them.
    asked = np.flatnonzero(~(labels.familiarity < STRANGE))
    return suggest(features, _doubt(labels.lead, labels.confidence), count, given, asked)


def _doubt(lead: NDArray[np.float64], confidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) larger where a label is less sure; of those that are equally sure, where its lead is smaller."""
    doubt = np.empty(len(lead))
    doubt[np.lexsort((-lead, -confidence))] = np.arange(len(lead))
    return doubt
