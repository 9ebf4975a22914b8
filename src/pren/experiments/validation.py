"""What parameters are chosen on: validation problems in which the test has no part."""

from __future__ import annotations

from pren.data import class_folds, own_folds
from pren.errors import PrenError
from pren.problem import Answers, Problem
from pren.runs.config import RunConfig

FIXED_IN_A_FOLD = ("train_on", "seen_test")  # options that would take in test images: a fold has its own answer


def validation_folds(config: RunConfig) -> list[tuple[Problem, Answers]]:
    """The folds of the split where it has some, otherwise folds drawn from the seen classes.

    No fold holds an image or a class of the test. In "gzsl" a fifth of the images of each class that stays seen goes
    to the fold's pool: these are the seen validation images.

    Args:
        config: The data to choose parameters for.
    """
    if "fold" in config.options:
        raise PrenError("Parameters are chosen on all validation folds of the data: leave the option fold out.")
    numbers = own_folds(config.data, config.root, config.split)
    if not numbers:
        problem, _ = config.load_data()
        return class_folds(problem)
    options = {key: value for key, value in config.options.items() if key not in FIXED_IN_A_FOLD}
    folds = []
    for number in numbers:
        problem, answers = config.model_copy(update={"options": {**options, "fold": number}}).load_data()
        if answers is None:
            raise PrenError(f"Fold {number} of {config.data} has no answers, so nothing can be chosen on it.")
        folds.append((problem, answers))
    return folds
