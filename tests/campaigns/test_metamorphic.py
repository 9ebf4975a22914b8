"""Every way of asking the same question again notices a defect of the kind that it is there for."""

import numpy as np
import pytest
import torch

from campaigns.fuzz.command import SUCCESS
from campaigns.fuzz.metamorphic import CHANGES, Case, _rows, _with_rows, check
from pren.methods.base import Method
from pren.methods.formulas import Affine

TRIES = 12  # problems, of which a defect has to change one


def by_names(problem):
    rows = np.argsort(problem.classes.names)
    return _with_rows(problem, rows, _rows(problem.train), problem.labels, _rows(problem.pool))


def centred(signatures):
    apart = signatures - signatures.mean(axis=0)
    return apart / np.linalg.norm(apart, axis=1, keepdims=True)


scores = Method.scores
ORDERED = "pren.trust.assessment.in_content_order pren.trust.rehearsal.in_content_order"
DEFECTS = {
    "rename": (ORDERED, by_names),
    "reorder": (ORDERED, lambda problem: problem),
    "rotate": ("pren.methods.base.Method.scores", lambda self, x: scores(self, x) - scores(self, x)[:1]),
    "double": ("pren.problem.copies._twins_in", lambda problem: np.arange(len(problem.pool))),
    "rescale": ("pren.methods.preparation.whitening.rooted", torch.tanh),
    "drop": ("pren.methods.rivals.eszsl.ESZSL._scorer_of", lambda self, A: Affine(self.weights_ @ centred(A).T)),
}


def ask(change, seeds):
    return [check(None, Case(seed, change, "pren-pool", "zsl", 8, 4)) for seed in seeds]


@pytest.mark.parametrize("change", CHANGES)
def test_a_planted_defect_is_noticed(monkeypatch, change):
    assert ask(change, [0]) == [SUCCESS]
    places, defect = DEFECTS[change]
    for place in places.split():
        monkeypatch.setattr(place, defect)
    with pytest.raises(AssertionError, match=rf"change='{change}'"):
        ask(change, range(TRIES))
