"""Which images of a run's pool to label next."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.data.folder_labels import LABELS, read_given
from pren.errors import PrenError
from pren.problem import candidates_of
from pren.runs.folder import RunFolder
from pren.runs.train import open_run, pool_scores
from pren.scoring import top_classes
from pren.trust.suggestion import suggest


class Suggestion(NamedTuple):
    """An image to look at.

    Attributes:
        image: The name of its file, or its place in the pool where images have no names.
        label: The class that it has now.
        runner_up: The second best class; "" if there is no other.
    """

    image: str
    label: str
    runner_up: str


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
            f"The pool of {folder.path} has labelled images in it (--hold-out): fit without it, and ask that run."
        )
    model, problem, answers = open_run(folder, data, root, weights, cache)
    names, files = problem.classes.names, None if answers is None else answers.names
    best, values = top_classes(pool_scores(model, problem), problem.classes, candidates_of(problem.setting), 2)
    given, _ = problem.decided()
    chosen = suggest(model.embed(problem.pool), _doubt(values), count, given)
    images = []
    for place in chosen:
        label, runner_up, *_ = [*(names[row] for row in best[place]), ""]
        images.append(Suggestion(str(place) if files is None else files[place], label, runner_up))
    own = problem.source.get("name") == "folder"
    return Suggestions(images, Path(data or folder.config().data) / LABELS if own else None)


def _doubt(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) from the best and the second score of every image (N, 2): larger where the best leads by less."""
    with np.errstate(invalid="ignore"):  # a method may rule out all classes alike
        return np.nan_to_num(values[:, -1] - values[:, 0])
