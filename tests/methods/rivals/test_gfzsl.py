"""GFZSL: its ridge, its densities and its EM, against loops and against what EM promises."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

from pren.methods.class_statistics import class_statistics
from pren.methods.formulas import DiagonalGaussians, on_arrays
from pren.methods.rivals.gfzsl import GFZSL, expectation_maximisation, kernel_ridge

sizes = st.tuples(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))


def log_densities(X, means, variances):
    return on_arrays(DiagonalGaussians(means, variances), X)


def mixture(n, d, K, seed):
    """Images, means and variances drawn anyhow."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 2, rng.normal(size=(K, d)), rng.uniform(0.2, 3, size=(K, d))


@settings(max_examples=25)
@given(sizes)
def test_densities_are_those_of_a_loop(size):
    X, means, variances = mixture(*size)
    for k, (mean, variance) in enumerate(zip(means, variances, strict=True)):
        normal = torch.distributions.Normal(torch.from_numpy(mean), torch.from_numpy(variance).sqrt())
        for i, x in enumerate(X):
            expected = float(normal.log_prob(torch.from_numpy(x)).sum())
            assert np.isclose(log_densities(X, means, variances)[i, k], expected, rtol=1e-9, atol=1e-9)


def test_densities_far_from_the_origin_keep_their_digits():
    X, means, variances = mixture(6, 3, 4, 0)
    far = 1e6
    expected = log_densities(X, means, variances)
    assert np.allclose(log_densities(X + far, means + far, variances), expected, rtol=1e-6)


def test_statistics_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(20, 3)) + 5, rng.choice([0, 2, 3], 20)
    means, variances = class_statistics(X, labels, 4)
    for label in range(4):
        mine = X[labels == label]
        assert np.allclose(means[label], mine.mean(axis=0) if len(mine) else 0)
        assert np.allclose(variances[label], mine.var(axis=0) if len(mine) else 0)


@settings(max_examples=25)
@given(st.integers(1, 8), st.integers(1, 4), st.floats(1e-2, 1e3), st.integers(0, 99))
def test_the_ridge_is_scikit_learns_on_deviations(n, m, ridge, seed):
    rng = np.random.default_rng(seed)
    known, values, wanted = rng.normal(size=(n, m)), rng.normal(size=(n, 3)) + 7, rng.normal(size=(2, m))
    model = KernelRidge(alpha=ridge, kernel="polynomial", degree=2, gamma=1, coef0=1)
    expected = model.fit(known, values - values.mean(axis=0)).predict(wanted) + values.mean(axis=0)
    assert np.allclose(kernel_ridge(known, values, wanted, ridge), expected, rtol=1e-5, atol=1e-7)


def test_a_strong_ridge_gives_every_unseen_class_the_average(make_problem):
    problem = make_problem()
    model = GFZSL(mean_reg=1e12, variance_reg=1e12, variance_floor=1e-6, transductive=False).fit(problem)
    seen, unseen = problem.classes.seen, problem.classes.unseen
    assert np.allclose(model.means_[unseen], model.means_[seen].mean(axis=0), atol=1e-9)
    assert np.allclose(np.log(model.variances_[unseen]), np.log(model.variances_[seen]).mean(axis=0), atol=1e-9)


@settings(max_examples=25)
@given(sizes, st.floats(1e-3, 1.0), st.data())
def test_the_likelihood_never_falls(size, floor, data):
    X, means, variances = mixture(*size)
    variances = np.maximum(variances, floor)
    free = np.array(data.draw(st.lists(st.booleans(), min_size=len(means), max_size=len(means))))
    after = expectation_maximisation(X, means, variances, free, floor, 10, 0.0)
    steps = np.diff(after[2])
    assert (steps >= -1e-9 * np.abs(after[2][0])).all()
    assert (after[1] >= floor).all()
    assert np.array_equal(after[0][~free], means[~free])
    assert np.array_equal(after[1][~free], variances[~free])


def test_a_step_is_that_of_a_loop():
    X, means, variances = mixture(9, 3, 3, 1)
    floor = 0.5
    after, spread, _ = expectation_maximisation(X, means, variances, np.ones(3, dtype=bool), floor, 1, 0.0)
    shares = np.exp(log_densities(X, means, variances))
    shares /= shares.sum(axis=1, keepdims=True)
    for k in range(3):
        mean = sum(shares[i, k] * X[i] for i in range(9)) / shares[:, k].sum()
        variance = sum(shares[i, k] * (X[i] - mean) ** 2 for i in range(9)) / shares[:, k].sum()
        assert np.allclose(after[k], mean)
        assert np.allclose(spread[k], np.maximum(variance, floor))


def test_a_component_that_explains_nothing_stays_where_it_is():
    X, means, variances = mixture(9, 3, 3, 1)
    means[2] += 1e4
    after, spread, _ = expectation_maximisation(X, means, variances, np.ones(3, dtype=bool), 0.1, 5, 0.0)
    assert np.array_equal(after[2], means[2])
    assert np.array_equal(spread[2], variances[2])
    assert not np.array_equal(after[:2], means[:2])


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_only_unseen_classes_adapt(make_problem, setting):
    problem = make_problem(setting=setting)
    before, after = (GFZSL(transductive=which).fit(problem) for which in (False, True))
    seen, unseen = problem.classes.seen, problem.classes.unseen
    assert np.array_equal(before.means_[seen], after.means_[seen])
    assert np.array_equal(before.variances_[seen], after.variances_[seen])
    assert not np.allclose(before.means_[unseen], after.means_[unseen])
    assert before.likelihoods_ == []
    assert len(after.likelihoods_) > 1


def test_the_pool_makes_unseen_classes_better(arrays):
    from pren.problem import Problem

    data = arrays()
    answers = data.pop("answers")
    problem = Problem.from_arrays(**data)
    right = (GFZSL(features="raw").fit(problem).predict(problem.pool) == problem.classes.named(answers)).mean()
    assert right > 0.9


def test_the_floor_is_in_the_units_of_the_data(make_problem, whole):
    from pren.problem import Problem

    problem = make_problem(setting="gzsl")
    names = problem.classes.names
    larger = Problem.from_arrays(
        1000 * whole(problem.train),
        [names[label] for label in problem.labels],
        problem.classes.signatures,
        1000 * whole(problem.pool),
        names,
        setting="gzsl",
    )
    first, second = (GFZSL(features="raw", variance_floor=0.7).fit(p) for p in (problem, larger))
    shift = 5 * np.log(1000)
    assert np.allclose(first.scores(problem.pool), second.scores(larger.pool) + shift, rtol=1e-4, atol=1e-4)
