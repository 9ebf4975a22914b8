"""The closed form of SAE, against SciPy's solver and its own objective."""

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given
from hypothesis import strategies as st

from pren.methods.rivals.sae import SAE, solve_sylvester
from pren.problem import Problem

sizes = st.tuples(st.integers(5, 20), st.integers(1, 6), st.integers(1, 5), st.integers(0, 10**6))


def random_problem(n, d, m, seed):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 4
    return Problem.from_arrays(
        rng.normal(size=(n, d)).astype(np.float32), labels, rng.random((6, m)) + 0.1, rng.normal(size=(3, d))
    )


def parts(problem):
    """X (n, d) and S (n, m)."""
    X = problem.train[np.arange(len(problem.train))].double().numpy()
    return X, np.stack([problem.classes.signatures[label] for label in problem.labels])


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_two_eigendecompositions_solve_sylvesters_equation(m, d, seed):
    rng = np.random.default_rng(seed)
    P, Q, C = rng.normal(size=(m + 3, m)), rng.normal(size=(d + 3, d)), rng.normal(size=(m, d))
    expected = scipy.linalg.solve_sylvester(P.T @ P, Q.T @ Q, C)
    assert np.allclose(solve_sylvester(P.T @ P, Q.T @ Q, C), expected, rtol=1e-6, atol=1e-8)


def test_a_singular_equation_gets_the_solution_of_least_norm():
    P, Q = np.diag([2.0, 0.0]), np.diag([3.0, 0.0, 0.0])
    C = np.array([[5.0, 4.0, 2.0], [6.0, 0.0, 0.0]])
    W = solve_sylvester(P, Q, C)
    assert np.allclose(P @ W + W @ Q, C)
    assert np.allclose(W, [[1.0, 2.0, 1.0], [2.0, 0.0, 0.0]])


@given(st.integers(0, 10**6))
def test_directions_that_rounding_leaves_almost_singular_are_left_out(seed):
    rng = np.random.default_rng(seed)
    S, X = rng.normal(size=(9, 2)) @ rng.normal(size=(2, 4)), rng.normal(size=(9, 3)) @ rng.normal(size=(3, 5))
    P, Q, C = S.T @ S, X.T @ X, S.T @ X
    system = np.kron(P, np.eye(5)) + np.kron(np.eye(4), Q)  # of W row by row
    expected = np.linalg.lstsq(system, C.ravel(), rcond=1e-10)[0].reshape(4, 5)
    assert np.allclose(solve_sylvester(P, Q, C), expected, atol=1e-6)


@given(sizes, st.floats(0.01, 100))
def test_the_weights_are_a_stationary_point_of_the_objective(size, weight):
    problem = random_problem(*size)
    X, S = (torch.from_numpy(part) for part in parts(problem))
    W = torch.from_numpy(SAE(code_weight=weight, features="raw").fit(problem).weights_).requires_grad_()

    def objective(W):
        return (X - S @ W).square().sum() + weight * (X @ W.T - S).square().sum()

    (at_the_optimum,) = torch.autograd.grad(objective(W), W)
    (elsewhere,) = torch.autograd.grad(objective(W + 1), W)
    assert at_the_optimum.abs().max() <= 1e-8 * (1 + elsewhere.abs().max())


@given(sizes)
def test_the_weights_are_those_of_scipys_solver(size):
    problem = random_problem(*size)
    X, S = parts(problem)
    ridge = 1e-9 * np.eye(S.shape[1])  # SciPy takes no singular equation, and fewer classes than attributes make one
    if np.linalg.matrix_rank(X) < X.shape[1]:
        return
    expected = scipy.linalg.solve_sylvester(S.T @ S + ridge, 0.2 * X.T @ X, 1.2 * S.T @ X)
    assert np.allclose(SAE(features="raw").fit(problem).weights_, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("direction", ["s2f", "f2s"])
def test_scores_are_cosines(make_problem, whole, direction):
    problem = make_problem()
    model = SAE(direction=direction, features="raw").fit(problem)
    scores = model.scores(problem.pool)
    for i, x in enumerate(whole(problem.pool).astype(np.float64)):
        for c, a in enumerate(problem.classes.signatures):
            left, right = (x, model.weights_.T @ a) if direction == "s2f" else (model.weights_ @ x, a)
            assert np.isclose(scores[i, c], left @ right / np.linalg.norm(left) / np.linalg.norm(right))


def test_the_direction_changes_nothing_that_is_learned(make_problem):
    one, other = (SAE(direction=direction).fit(make_problem()).weights_ for direction in ("s2f", "f2s"))
    assert np.array_equal(one, other)
