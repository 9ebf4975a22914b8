"""`predict_proba`: shares of the candidates where a method knows them, and a refusal where it does not."""

import math

import numpy as np
import pytest
from refusals import refused

from pren.methods.pren_pool import PrENPool
from pren.methods.registry import METHODS
from pren.methods.rivals.eszsl import ESZSL
from pren.problem import candidates_of

WITH = [name for name, entry in METHODS.items() if entry.method.log_shares]
SETTINGS = pytest.mark.parametrize("setting", ["zsl", "gzsl"])
AMONG = pytest.mark.parametrize("among", [None, "unseen", "seen", "all"])


def softmax_by_loop(scores, candidates):
    """The shares of scores (N, L), one number at a time."""
    shares = []
    for row in scores.tolist():
        top = max(score for score, counts in zip(row, candidates, strict=True) if counts)
        raised = [math.exp(score - top) if counts else 0.0 for score, counts in zip(row, candidates, strict=True)]
        shares.append([number / sum(raised) for number in raised])
    return np.array(shares)


def check(model, inputs, setting, among):
    shares, scores = model.predict_proba(inputs, among), model.scores(inputs)
    candidates = model.classes_.among(among or candidates_of(setting))
    assert shares.shape == scores.shape
    assert np.allclose(shares, softmax_by_loop(scores, candidates), rtol=1e-9, atol=1e-15)
    assert np.allclose(shares.sum(axis=1), 1)
    assert not shares[:, ~candidates].any()
    assert np.array_equal(model.classes_.named(shares.argmax(axis=1)), model.predict(inputs, among))


def test_these_methods_know_shares():
    assert {"pren-vote", "pren-pool", "gfzsl", "qfsl", "clip"} <= set(WITH)
    assert not {"pren", "eszsl", "uda"} & set(WITH)


@pytest.mark.parametrize("name", WITH)
@SETTINGS
@AMONG
def test_shares_are_those_of_a_loop(name, setting, among, quick, make_problem_of):
    problem = make_problem_of(name, setting=setting)
    check(quick(name, gamma=0.5).fit(problem), problem.pool, setting, among)


def test_shares_of_gaussians_are_those_of_their_densities(make_problem):
    problem = make_problem()
    model = PrENPool().fit(problem)
    x, unseen = model.embed(problem.pool)[0], np.flatnonzero(problem.classes.unseen)
    variance = float(model.variance_[0])
    weights = {}
    for row in unseen:
        distance = sum((a - b) ** 2 for a, b in zip(x, model.means_[row], strict=True))
        weights[row] = math.exp(-distance / (2 * variance) + model.offsets_[row])
    expected = [weights.get(row, 0.0) / sum(weights.values()) for row in range(len(problem.classes))]
    assert np.allclose(model.predict_proba(problem.pool)[0], expected)


@SETTINGS
def test_soft_k_means_gives_shares_to_any_method(setting, make_problem):
    problem = make_problem(setting=setting)
    check(ESZSL(refinement="soft-kmeans").fit(problem), problem.pool, setting, None)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in WITH])
def test_other_methods_name_those_that_know(name, quick, make_problem_of):
    problem = make_problem_of(name)
    model = quick(name).fit(problem)
    with refused("no-shares") as caught:
        model.predict_proba(problem.pool)
    assert all(known in str(caught.value) for known in WITH)


def test_what_a_refinement_does_not_know_is_refused(make_problem):
    problem = make_problem()
    with refused("no-shares"):
        PrENPool(refinement="label-propagation").fit(problem).predict_proba(problem.pool)
    with refused("no-shares"):
        PrENPool(refinement="soft-kmeans").fit(problem).predict_proba(problem.pool, among="all")


def test_an_unfitted_method_is_refused(make_problem):
    with refused("not-fitted"):
        PrENPool().predict_proba(make_problem().pool)
