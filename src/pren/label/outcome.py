"""A fitted model with its data, and what it makes of the pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from pren.evaluation import Marks, evaluate_marks, reliability
from pren.label.predictions import Predictions
from pren.methods.base import Method
from pren.problem import UNKNOWN, Answers, Problem
from pren.problem.copies import as_twins, labelled_twins
from pren.problem.inputs import Inputs
from pren.problem.scoring import scorer
from pren.store.folder import Figures
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
        """Label the pool; copies get the label of their twin, and copies of labelled inputs no confidence in ZSL."""
        score, marks = scorer(method, problem), []

        def watched(inputs: Inputs) -> NDArray[np.float64]:
            scores = score(inputs)
            marks.append(Marks.of(scores, problem.classes, problem.setting))
            return scores

        labels = label_pool(watched, as_twins(problem), trust)
        if trust is not None and problem.setting == "zsl":  # their classes are no candidates
            no_label = (labelled_twins(problem) >= 0) & (labels.confidence < 1.0)
            labels = labels._replace(confidence=np.where(no_label, 0.0, labels.confidence))
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
        numbered = tuple(map(str, range(len(labels.classes))))
        names = numbered if answers is None or answers.names is None else answers.names
        classes = np.stack([labels.classes, np.where(labels.classes == UNKNOWN, UNKNOWN, labels.runners_up)], axis=1)
        scores = np.where(classes == UNKNOWN, np.nan, np.stack([labels.scores, labels.other_scores], axis=1))
        found = Predictions(names, classes, scores, labels.confidence, labels.familiarity, ("",) * len(names), table)
        return found if answers is None or answers.names is None else found.with_unreadable(answers.unreadable)


def any_known(answers: Answers | None) -> TypeGuard[Answers]:
    """Whether any answer is known."""
    return answers is not None and bool(answers.known.any())
