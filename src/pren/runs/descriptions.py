"""Which files of a folder describe the classes, if none are asked for: `pren.trust.sources` chooses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pren.data.folder.class_sources import names_of
from pren.problem import UNKNOWN, Answers, Problem
from pren.store.config import SOURCES, RunConfig
from pren.trust.quiet import quietly
from pren.trust.sources import best_sources


def described(config: RunConfig, problem: Problem, answers: Answers | None) -> tuple[Problem, Answers | None]:
    """The problem of a configuration with the sources that are best, as if their names and weights had been given.

    Only a folder with several sources of which none is named has a choice.
    """
    names = names_of(problem.source)
    if len(names) < 2 or config.options.keys() & set(SOURCES):
        return problem, answers
    found = best_sources(problem, names)
    with quietly():  # all that is to be said was said
        other = config.model_copy(update={"options": {**config.options, **found.chosen.options()}}).load_data()[0]
    row = {name: place for place, name in enumerate(other.classes.names)}
    rows = np.array([*(row[name] for name in problem.classes.names), UNKNOWN])
    same = {key: other.source[key] for key in ("signatures", "files")}
    return (
        replace(
            problem,
            labels=rows[problem.labels],
            given=None if problem.given is None else rows[problem.given],
            classes=other.classes,
            source={**problem.source, **same, "chosen": found.model_dump()},
            recipe=other.recipe,
        ),
        None if answers is None else replace(answers, labels=rows[answers.labels]),
    )
