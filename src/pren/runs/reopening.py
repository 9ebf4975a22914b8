"""Open a run with its model and its data, and evaluate it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from pren.evaluation import Marks, evaluate_marks, reliability
from pren.foundation.errors import PrenError
from pren.images.photographs import check_same_facts
from pren.label.predictions import Predictions, named
from pren.methods.base import Method
from pren.problem import UNKNOWN, Answers, Problem
from pren.problem.inputs import Inputs
from pren.problem.scoring import scorer
from pren.runs.config import RunConfig
from pren.runs.opening import open_problem
from pren.runs.store.folder import Figures, RunFolder
from pren.trust import Labels, Trust, label_pool


@dataclass(frozen=True, eq=False)
class Outcome:
    """A fitted method, its data, and its labels of the pool.

    Attributes:
        method: The fitted method.
        problem: The data that it was fitted to.
        answers: None if there are none.
        trust: How far to trust labels; None if that is not known.
        labels: Of the whole pool, also doubtful ones.
        marks: Of the whole pool, for evaluation.
    """

    method: Method
    problem: Problem
    answers: Answers | None
    trust: Trust | None
    labels: Labels
    marks: Marks

    @classmethod
    def of(cls, method: Method, problem: Problem, answers: Answers | None, trust: Trust | None) -> Outcome:
        """Label the pool."""
        score, marks = scorer(method, problem), []

        def watched(inputs: Inputs) -> NDArray[np.float64]:
            scores = score(inputs)
            marks.append(Marks.of(scores, problem.classes, problem.setting))
            return scores

        labels = label_pool(watched, problem, trust)
        return cls(method, problem, answers, trust, labels, Marks.joined(marks))

    def figures(self) -> Figures | None:
        """How good labels and confidence are; None without answers."""
        if not any_known(self.answers):
            return None
        known, labels = self.answers.known, self.labels
        metrics = evaluate_marks(self.marks, self.answers, self.problem.classes, self.problem.setting)
        return Figures(
            **dict(metrics),
            hashes=self.problem.fingerprint(),
            rule=self.method.get_params().get("gzsl_rule"),
            reliability=reliability(labels.confidence[known], (labels.classes == self.answers.labels)[known]),
        )

    def predictions(self, labels: Labels) -> Predictions:
        """Labels of the pool with runners-up, for a table: files by name, also unreadable ones."""
        answers, table = self.answers, self.problem.classes
        names = named(None if answers is None else answers.names, len(labels.classes))
        classes = np.stack([labels.classes, np.where(labels.classes == UNKNOWN, UNKNOWN, labels.runners_up)], axis=1)
        scores = np.where(classes == UNKNOWN, np.nan, np.stack([labels.scores, labels.other_scores], axis=1))
        found = Predictions(names, classes, scores, labels.confidence, labels.familiarity, ("",) * len(names), table)
        return found if answers is None or answers.names is None else found.with_unreadable(answers.unreadable)


def evaluate_run(
    folder: RunFolder,
    data: str | None = None,
    root: str | None = None,
    weights: str | None = None,
    cache: str | None = None,
) -> Figures:
    """Evaluate the model of a run; the arguments are those of `open_run`.

    Raises:
        PrenError: If there are no answers, or the data have changed.
    """
    found = open_run(folder, data, root, weights, cache).figures()
    if found is None:
        raise PrenError(
            "no-answers",
            f"The data of {folder.path} have no answers: add classes of inputs of the pool (in a folder of "
            "photographs: answers.csv).",
        )
    return found


def open_run(
    folder: RunFolder,
    data: str | None = None,
    root: str | None = None,
    weights: str | None = None,
    cache: str | None = None,
) -> Outcome:
    """The model of a run, its data, and its labels of the pool.

    The arguments say where data, root, weights of a frozen backbone or cache are, if they have moved.

    Raises:
        PrenError: If the data have changed.
    """
    config = folder.config()
    given = {"data": data, "root": root, "cache": cache}
    moved: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if weights is not None:
        if config.extractor is None:
            raise PrenError("option-conflict", f"The model in {folder.path} contains its weights: omit --weights.")
        moved["extractor"] = config.extractor.model_copy(update={"weights": weights})
    model = folder.model()
    problem, answers = open_problem(config.model_copy(update=moved), fitted=model)
    if problem.extractor is not None and model.extractor_ is not None:
        check_same_facts(problem.extractor["facts"], model.extractor_["facts"])
    check_hashes(folder, config, problem.fingerprint())
    return Outcome.of(model, problem, answers, folder.trust())


def any_known(answers: Answers | None) -> TypeGuard[Answers]:
    """Whether any answer is known."""
    return answers is not None and bool(answers.known.any())


def check_hashes(folder: RunFolder, recorded: RunConfig, hashes: dict[str, str]) -> None:
    """Raise a `PrenError` if the data are not those of a run."""
    if recorded.record.get("hashes") != hashes:
        raise PrenError("data-changed", f"The data have changed since the run in {folder.path}: fit again.")
