"""How sure labels are as one module: what `Trust` says."""

import numpy as np
import pytest
import torch

from pren.methods.formulas import on_arrays
from pren.methods.rivals.eszsl import ESZSL
from pren.problem.inputs import ArrayInputs
from pren.trust import Confidence, Trust, assess
from pren.trust.confidence import Steps
from pren.trust.module import TrustModule


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_confidence_is_that_of_the_library(make_problem, whole, setting):
    problem = make_problem(n_seen=8, setting=setting, pool_per_class=12)
    model = ESZSL(gamma=0.1).fit(problem)
    trust = assess(model, problem, 2)
    assert trust.familiarity is not None
    trust.familiarity.kind *= 0.3  # so that some images look strange
    pool = whole(problem.pool)
    inputs = np.concatenate([pool, -pool, np.zeros((1, 5), dtype=np.float32)])
    scores = model.scores(inputs)
    expected = trust.sure(scores, problem.classes, setting, trust.familiar(ArrayInputs(inputs)))
    module = TrustModule(trust, problem.classes, setting)
    found = module(torch.from_numpy(inputs), torch.from_numpy(scores)).numpy()
    assert np.allclose(found, expected, equal_nan=True, atol=1e-12)
    assert (expected == 0).any()
    assert (expected > 0.2).any()
    assert np.allclose(
        module.familiarity(torch.from_numpy(inputs)).numpy(), trust.familiar(ArrayInputs(inputs)), atol=1e-12
    )


def test_steps_are_interpolated_as_numpy_does():
    leads, shares = np.array([0.0, 0.5, 0.5, 2.0]), np.array([0.1, 0.2, 0.6, 1.0])
    given = np.array([-1.0, 0.0, 0.25, 0.5, 0.51, 1.9, 2.0, 1e300])
    assert np.allclose(on_arrays(Steps(leads=leads, shares=shares), given), np.interp(given, leads, shares))


def test_what_is_not_known_stays_unknown(make_problem):
    """A single candidate has no lead, and labels of seen classes were never rehearsed."""
    problem = make_problem(setting="gzsl")
    trust = Trust(None, Confidence({"unseen": Steps(leads=np.array([0.0]), shares=np.array([0.3]))}), np.zeros(0), (5,))
    scores = np.zeros((2, 8))
    scores[0, 0], scores[1, 7] = np.inf, np.inf
    expected = trust.sure(scores, problem.classes, "gzsl", np.full(2, np.nan))
    found = TrustModule(trust, problem.classes, "gzsl")(torch.zeros(2, 5), torch.from_numpy(scores)).numpy()
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.isnan(found[0])
    assert found[1] == 0.3
