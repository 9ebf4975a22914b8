"""UDA: its two steps, against plain loops, scikit-learn and autograd."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from pren.methods.rivals.posterior import posterior
from pren.methods.rivals.uda import UDA, adapted, bounded, codes

sizes = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
weights = st.floats(0.05, 10)


def parts(n, d, m, seed):
    """X (n, d), D (d, m), targets (n, m)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(d, m)), rng.normal(size=(n, m))


def objective(X, D, Y, targets, near, dictionary_reg, code_reg, sparsity):
    return (
        ((X - Y @ D.T) ** 2).sum()
        + dictionary_reg * ((D - near) ** 2).sum()
        + code_reg * ((Y - targets) ** 2).sum()
        + sparsity * abs(Y).sum()
    )


@settings(max_examples=25)
@given(sizes, weights, st.floats(0, 2))
def test_codes_fulfil_the_conditions_of_the_optimum(size, code_reg, sparsity):
    X, D, targets = parts(*size)
    Y = codes(X, D, targets, code_reg, sparsity, targets)
    for x, y, t in zip(X, Y, targets, strict=True):
        gradient = 2 * D.T @ (D @ y - x) + 2 * code_reg * (y - t)
        for slope, value in zip(gradient, y, strict=True):
            if value == 0:
                assert abs(slope) <= sparsity + 1e-4
            else:
                assert np.isclose(slope, -sparsity * np.sign(value), atol=1e-4)


@settings(max_examples=25)
@given(sizes, weights, st.floats(1e-3, 1))
def test_codes_are_lassos(size, code_reg, sparsity):
    """Each image is a lasso with λ2 as further rows."""
    X, D, targets = parts(*size)
    Y = codes(X, D, targets, code_reg, sparsity, np.zeros_like(targets))
    rows = np.vstack([D, np.sqrt(code_reg) * np.eye(D.shape[1])])
    for x, y, t in zip(X, Y, targets, strict=True):
        wanted = np.concatenate([x, np.sqrt(code_reg) * t])
        lasso = Lasso(alpha=sparsity / (2 * len(rows)), fit_intercept=False, tol=1e-12, max_iter=100_000)
        assert np.allclose(y, lasso.fit(rows, wanted).coef_, atol=1e-4)


@settings(max_examples=25)
@given(sizes, weights)
def test_the_dictionary_is_a_stationary_point(size, ridge):
    X, near, Y = parts(*size)
    D = torch.from_numpy(adapted(X, Y, near, ridge)).requires_grad_()
    X, Y, near = (torch.from_numpy(part) for part in (X, Y, near))

    def terms(D):
        return (X - Y @ D.T).square().sum() + ridge * (D - near).square().sum()

    (here,) = torch.autograd.grad(terms(D), D)
    (elsewhere,) = torch.autograd.grad(terms(D + 1), D)
    assert here.abs().max() <= 1e-9 * (1 + elsewhere.abs().max())


def test_only_long_columns_are_shortened():
    D = np.array([[3.0, 0.3], [4.0, 0.4]])
    assert np.allclose(bounded(D), [[0.6, 0.3], [0.8, 0.4]])


@settings(max_examples=25)
@given(sizes, weights, weights, st.floats(0, 1))
def test_the_objective_falls_with_every_step(size, dictionary_reg, code_reg, sparsity):
    """Before columns are shortened, which is a bound and not a step."""
    X, near, targets = parts(*size)
    D, Y = near, targets
    last = np.inf
    for _ in range(3):
        Y = codes(X, D, targets, code_reg, sparsity, Y)
        middle = objective(X, D, Y, targets, near, dictionary_reg, code_reg, sparsity)
        D = adapted(X, Y, near, dictionary_reg)
        now = objective(X, D, Y, targets, near, dictionary_reg, code_reg, sparsity)
        assert now <= middle + 1e-6
        assert middle <= last + 1e-6
        last = now


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_the_posterior_is_that_of_a_loop(make_problem, setting):
    table = make_problem(setting=setting).classes
    scores = np.random.default_rng(0).normal(size=(3, 8)) + 5 * table.seen
    p = posterior(scores, table, setting, 2.0)
    for row, mine in zip(p, scores, strict=True):
        expected = np.zeros(8)
        for group in [table.unseen] if setting == "zsl" else [table.unseen, table.seen]:
            for c in np.flatnonzero(group):
                expected[c] = np.exp(2 * (mine[c] - mine[group].mean()) / mine[group].std())
        assert np.allclose(row, expected / expected.sum())


def test_equal_scores_are_an_even_posterior(make_problem):
    table = make_problem().classes
    assert np.allclose(posterior(np.ones((2, 8)), table, "zsl", 3.0), table.unseen / 4)


def test_the_objective_has_the_sum_over_classes(make_problem):
    """Σ_c w_ic ‖y - a_c‖² and ‖y - Σ_c w_ic a_c‖² differ by what does not depend on y."""
    problem = make_problem()
    A = problem.classes.signatures
    w = posterior(np.random.default_rng(0).normal(size=(1, 8)), problem.classes, "zsl", 1.0)[0]

    def both(y):
        return sum(w[c] * ((y - A[c]) ** 2).sum() for c in range(8)), ((y - w @ A) ** 2).sum()

    differences = [np.subtract(*both(y)) for y in np.random.default_rng(1).normal(size=(3, A.shape[1]))]
    assert np.allclose(differences, differences[0])


def test_without_rounds_the_dictionary_is_the_source(make_problem, whole):
    problem = make_problem()
    model = UDA(rounds=0, features="l2", source_reg=0.5).fit(problem)
    X = whole(problem.train).astype(np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    S = problem.classes.signatures[problem.labels]
    expected = bounded(np.linalg.solve(S.T @ S + 0.5 * np.eye(6), S.T @ X).T)
    assert np.allclose(model.dictionary_, expected, atol=1e-6)
    assert not np.allclose(UDA(features="l2").fit(problem).dictionary_, expected, atol=1e-3)


@pytest.mark.parametrize("features", ["raw", "l2", "standard", "minmax"])
def test_labelled_images_have_length_1_on_average(make_problem, features):
    problem = make_problem()
    model = UDA(features=features).fit(problem)
    assert np.isclose(((model.preparation_.of(problem.train) / model.length_) ** 2).sum(axis=1).mean(), 1)
