"""Whether a pile of photographs is mixed: `--setting auto` finds out."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from pren.problem import UNKNOWN, Answers, Problem
from pren.trust.mixed import mixed

log = logging.getLogger(__name__)


def settled(problem: Problem, answers: Answers | None) -> tuple[Problem, Answers | None]:
    """A problem that was opened as "gzsl", with the setting that its pool asks for.

    Where it cannot be found out, the pool counts as one of unseen classes.
    """
    found = mixed(problem)
    if found is not None:
        problem = replace(problem, source={**problem.source, "mixed": found.model_dump()})
        if found.likely:
            return problem, answers
    problem = replace(problem, setting="zsl")
    if answers is not None:
        barred = answers.labels[answers.known & np.append(problem.classes.seen, False)[answers.labels]]
        if len(barred):
            log.warning(
                "%r is a seen class (answers like this: %d): in the setting 'zsl' such answers do not count. Choose "
                "'gzsl', or remove these photographs from the pool.",
                min(problem.classes.names[row] for row in barred),
                len(barred),
            )
        answers = replace(answers, labels=np.where(np.isin(answers.labels, barred), UNKNOWN, answers.labels))
    return problem, answers
