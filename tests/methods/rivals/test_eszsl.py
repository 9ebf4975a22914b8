"""The closed form of ESZSL, against its objective and against dense inverses."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pren.methods.rivals.eszsl import ESZSL
from pren.problem import ClassTable, Problem
from pren.problem.inputs import ArrayInputs


def problem_of(n, d, seen, unseen, m, seed, setting="zsl"):
    """A problem whose seen and unseen classes are mixed in the table."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(seen + unseen)
    labels = np.concatenate([rows[:seen], rng.choice(rows[:seen], max(0, n - seen))])
    features = rng.normal(size=(len(labels), d)).astype(np.float32)
    return Problem.from_arrays(
        features, labels, rng.normal(size=(seen + unseen, m)), rng.normal(size=(4, d)), setting=setting
    )


def parts(problem):
    """X (n, d), A (|S|, m) and Y (n, |S|) by plain loops."""
    X = problem.train[np.arange(len(problem.train))].double().numpy()
    seen = [row for row in range(len(problem.classes)) if problem.classes.seen[row]]
    A = np.stack([problem.classes.signatures[row] for row in seen])
    Y = np.array([[1.0 if label == row else 0.0 for row in seen] for label in problem.labels])
    return X, A, Y


sizes = st.tuples(
    st.integers(1, 30), st.integers(1, 12), st.integers(1, 5), st.integers(1, 4), st.integers(1, 8), st.integers(0, 99)
)
regularisers = st.floats(1e-2, 1e2)


@given(sizes, regularisers, regularisers)
def test_the_closed_form_is_two_dense_inverses(size, g, l):  # noqa: E741  (the paper's letter)
    problem = problem_of(*size)
    X, A, Y = parts(problem)
    left = np.linalg.inv(X.T @ X + g * np.eye(X.shape[1]))
    right = np.linalg.inv(A.T @ A + l * np.eye(A.shape[1]))
    expected = left @ X.T @ Y @ A @ right
    weights = ESZSL(feature_reg=g, signature_reg=l, features="raw").fit(problem).weights_
    assert weights.shape == (X.shape[1], A.shape[1])
    assert np.allclose(weights, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max() + 1e-12)


@given(sizes, regularisers, regularisers)
def test_the_closed_form_is_a_stationary_point_of_the_objective(size, g, l):  # noqa: E741
    problem = problem_of(*size)
    X, A, Y = (torch.from_numpy(part) for part in parts(problem))
    model = ESZSL(feature_reg=g, signature_reg=l, features="raw").fit(problem)
    V = torch.from_numpy(model.weights_).requires_grad_()

    def objective(V):
        terms = (X @ V @ A.T - Y, 1.0), (V @ A.T, g), (X @ V, l), (V, g * l)
        return sum(weight * term.square().sum() for term, weight in terms)

    (at_the_optimum,) = torch.autograd.grad(objective(V), V)
    (elsewhere,) = torch.autograd.grad(objective(V + 1), V)
    assert at_the_optimum.abs().max() <= 1e-9 * (1 + elsewhere.abs().max())


def test_the_two_regularisers_are_not_the_same():
    problem = problem_of(20, 6, 4, 3, 5, 0)
    assert not np.allclose(
        ESZSL(feature_reg=10.0, signature_reg=0.1).fit(problem).weights_,
        ESZSL(feature_reg=0.1, signature_reg=10.0).fit(problem).weights_,
    )


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_scores_are_bilinear(setting):
    problem = problem_of(20, 6, 4, 3, 5, 0, setting)
    model = ESZSL(gamma=0.5, features="raw").fit(problem)
    pool = problem.pool[np.arange(4)].double().numpy()
    expected = np.empty((4, 7))
    for image in range(4):
        for row in range(7):
            expected[image, row] = pool[image] @ model.weights_ @ problem.classes.signatures[row]
            if setting == "gzsl" and problem.classes.seen[row]:
                expected[image, row] -= 0.5
    assert np.allclose(model.scores(problem.pool), expected, rtol=1e-10)


def test_many_images_go_through_in_pieces(monkeypatch):
    """The sums over images do not notice where one piece ends and the next begins."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2500, 3)).astype(np.float32)
    labels = rng.integers(0, 4, size=2500)
    problem = Problem.from_arrays(features, labels, rng.normal(size=(6, 4)), rng.normal(size=(2100, 3)))
    X, A, Y = parts(problem)
    expected = np.linalg.solve(X.T @ X + np.eye(3), X.T @ Y @ A) @ np.linalg.inv(A.T @ A + np.eye(4))
    model = ESZSL(feature_reg=1.0, signature_reg=1.0, features="raw").fit(problem)
    assert np.allclose(model.weights_, expected, rtol=1e-9)
    assert model.scores(problem.pool).shape == (2100, 6)


def test_images_are_flat_pixels(make_problem, whole):
    images = make_problem(shape=(3, 4, 5))
    flat = Problem(
        ArrayInputs(whole(images.train).reshape(len(images.train), -1)),
        images.labels,
        ArrayInputs(whole(images.pool).reshape(len(images.pool), -1)),
        images.classes,
    )
    assert np.array_equal(ESZSL().fit(images).scores(images.pool), ESZSL().fit(flat).scores(flat.pool))


def test_the_classes_of_the_training_images_are_learned(make_problem, whole):
    problem = make_problem(per_class=10)
    scores = ESZSL(feature_reg=0.1, signature_reg=1e-6).fit(problem).scores(problem.train)
    seen = np.flatnonzero(problem.classes.seen)
    assert (seen[scores[:, seen].argmax(axis=1)] == problem.labels).mean() > 0.9


def test_a_system_that_cannot_be_solved_is_explained():
    """With a ridge far below round-off and fewer images than features, X'X + g I is not positive definite."""
    rng = np.random.default_rng(0)
    table = ClassTable.build(["a", "b", "c"], np.eye(3), np.array([True, True, False]))
    features = ArrayInputs(rng.normal(size=(4, 40)).astype(np.float32))
    problem = Problem(features, np.array([0, 1, 0, 1]), features, table)
    with refused("singular"):
        ESZSL(feature_reg=1e-300).fit(problem)


def test_features_far_from_zero_do_not_hide_the_classes():
    """With the paper's targets {-1, 1} and no offset, all the -1 drown what tells the classes apart."""
    rng = np.random.default_rng(3)
    signatures, loadings = rng.random((50, 12)) ** 3, rng.normal(size=(12, 30)) / 2
    labels, answers = np.repeat(np.arange(40), 10), np.repeat(np.arange(40, 50), 10)
    train, pool = (
        5 + (signatures[rows] - signatures.mean(axis=0)) @ loadings + rng.normal(size=(len(rows), 30)) / 4
        for rows in (labels, answers)
    )
    problem = Problem.from_arrays(train, labels, signatures, pool)
    A = problem.classes.signatures
    signed = np.where(labels[:, None] == np.arange(40), 1.0, -1.0)
    left = np.linalg.solve(train.T @ train + np.eye(30), train.T @ signed @ A[:40])
    V = left @ np.linalg.inv(A[:40].T @ A[:40] + np.eye(12))
    assert (40 + (pool @ V @ A[40:].T).argmax(axis=1) == answers).mean() < 0.4  # chance is 0.1
    scores = ESZSL().fit(problem).scores(problem.pool)
    assert (40 + scores[:, 40:].argmax(axis=1) == answers).mean() > 0.9


@given(sizes, regularisers, regularisers)
def test_on_centred_features_the_targets_of_the_paper_only_double_the_scores(size, g, l):  # noqa: E741
    problem = problem_of(*size)
    model = ESZSL(feature_reg=g, signature_reg=l, features="standard").fit(problem)
    X, (_, A, Y) = model.embed(problem.train), parts(problem)
    left = np.linalg.solve(X.T @ X + g * np.eye(X.shape[1]), X.T @ (2 * Y - 1) @ A)
    signed = left @ np.linalg.inv(A.T @ A + l * np.eye(A.shape[1]))
    assert np.allclose(2 * model.weights_, signed, rtol=1e-6, atol=1e-9)
