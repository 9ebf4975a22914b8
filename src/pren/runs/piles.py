"""Whether a pile of photographs is mixed: `--setting auto` finds out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pren.problem import UNKNOWN, Answers, Problem
from pren.trust.mixed import mixed


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
        known = np.append(problem.classes.unseen, False)[answers.labels]  # the last for `UNKNOWN`
        answers = replace(answers, labels=np.where(known, answers.labels, UNKNOWN))
    return problem, answers
