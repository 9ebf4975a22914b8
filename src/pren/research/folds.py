"""Validation folds to choose parameters on, without any input or class of the test."""

from __future__ import annotations

from pren.data import class_folds
from pren.data.survey import own_folds
from pren.foundation.errors import PrenError
from pren.images.extraction import OnProgress
from pren.problem import Answers, Problem
from pren.runs.opening import open_problem
from pren.store.config import RunConfig
from pren.training.processes import Fabric

FIXED_IN_A_FOLD = ("train_on", "seen_test")  # options that would use test inputs


def open_folds(
    config: RunConfig, fabric: Fabric | None = None, on_extract: OnProgress | None = None
) -> list[tuple[Problem, Answers]]:
    """The folds of the split if it has some, else folds of the seen classes.

    No fold has an input or a class of the test. In "gzsl" a fifth of the inputs of each class that stays seen goes to
    the fold's pool: these are the seen validation inputs.
    """
    if "fold" in config.options:
        raise PrenError("option-conflict", "Tuning takes all validation folds: leave out the option fold.")
    numbers = own_folds(config.data, config.root, config.split)
    if not numbers:
        problem, _ = open_problem(config, fabric, on_extract)
        return class_folds(problem)
    options = {key: value for key, value in config.options.items() if key not in FIXED_IN_A_FOLD}
    folds = []
    for number in numbers:
        fold = config.model_copy(update={"options": {**options, "fold": number}})
        problem, answers = open_problem(fold, fabric, on_extract)
        if answers is None:
            raise PrenError("no-answers", f"Fold {number} of {config.data} has no answers, which tuning needs.")
        folds.append((problem, answers))
    return folds
