"""What the ranking methods share, against plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pren.methods.formulas import on_arrays
from pren.methods.rivals.devise import DeViSE
from pren.methods.rivals.ranking import Compatibility, initial_weights, violations

seeds = st.integers(0, 10**6)


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), seeds)
def test_the_compatibility_is_that_of_the_best_map(n, K, d, m, L, seed):
    rng = np.random.default_rng(seed)
    x, W, A = rng.normal(size=(n, d)), rng.normal(size=(K, d, m)), rng.normal(size=(L, m))
    scores = on_arrays(Compatibility(W, A), x)
    assert scores.shape == (n, L)
    for i in range(n):
        for c in range(L):
            assert np.isclose(scores[i, c], max(x[i] @ W[k] @ A[c] for k in range(K)))


@given(st.integers(1, 6), st.integers(1, 6), st.floats(0.01, 10), seeds)
def test_violations_are_those_of_a_loop(n, L, margin, seed):
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(size=(n, L)), rng.integers(0, L, size=n)
    amounts = violations(torch.from_numpy(scores), torch.from_numpy(labels), margin)
    for i in range(n):
        for c in range(L):
            expected = 0.0 if c == labels[i] else max(0.0, margin + scores[i, c] - scores[i, labels[i]])
            assert np.isclose(amounts[i, c], expected)


def test_initial_weights_have_columns_of_unit_length():
    weights = initial_weights((2, 7, 3), np.random.default_rng(0))
    assert weights.shape == (2, 7, 3)
    assert weights.dtype == torch.float32
    assert np.allclose((weights**2).sum(dim=1), 1)
    assert not np.allclose(weights[0], weights[1])


def test_no_epochs_leave_the_initial_weights(make_problem):
    weights = DeViSE(epochs=0, seed=3).fit(make_problem()).weights_
    assert weights.shape == (1, 5, 6)
    assert np.allclose((weights**2).sum(axis=1), 1)


@pytest.mark.parametrize("batch_size", [4, 7, 1000])
def test_any_size_of_batch_learns_the_training_images(make_problem, batch_size):
    problem = make_problem(per_class=10)
    model = DeViSE(batch_size=batch_size, epochs=20, features="standard").fit(problem)
    assert (model.predict(problem.train, among="seen") == problem.classes.named(problem.labels)).mean() > 0.9
