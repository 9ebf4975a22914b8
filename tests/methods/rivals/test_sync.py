"""SynC: similarities of classes, and the classifiers that are mixed from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from pren.methods.rivals.classifiers import fit_classifiers, one_versus_other
from pren.methods.rivals.sync import SynC, scaled_distances, similarity


@given(st.integers(1, 5), st.integers(2, 5), st.integers(2, 4), st.floats(0.05, 20), st.integers(0, 10**6))
def test_similarities_are_those_of_a_loop(L, R, m, sharpness, seed):
    rng = np.random.default_rng(seed)
    signatures, phantoms = rng.random((L, m)) + 0.1, rng.random((R, m)) + 0.1

    def distance(a, b):
        a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
        return sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) ** 0.5

    median = np.median([distance(phantoms[r], phantoms[q]) for r in range(R) for q in range(r)])
    s = similarity(signatures, phantoms, sharpness)
    for c in range(L):
        squares = [(distance(signatures[c], b) / median) ** 2 for b in phantoms]
        weights = [np.exp(-sharpness * (square - min(squares))) for square in squares]  # never 0 all together
        assert np.allclose(s[c], np.array(weights) / sum(weights), rtol=1e-4, atol=1e-6)


def test_the_median_distance_is_the_unit():
    phantoms = np.random.default_rng(0).random((7, 3))
    distances = scaled_distances(phantoms, phantoms)
    assert np.isclose(np.median(distances[np.triu_indices(7, 1)]), 1)
    assert np.allclose(distances[np.triu_indices(7, 1)] * np.median(pdist(normal(phantoms))), pdist(normal(phantoms)))


def normal(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_phantoms_that_are_all_the_same_have_no_distance():
    assert np.array_equal(scaled_distances(np.ones((2, 3)), np.ones((4, 3))), np.zeros((2, 4)))
    assert np.allclose(similarity(np.ones((2, 3)), np.ones((4, 3)), 1.0), 0.25)


def test_seen_classes_have_the_classifiers_that_were_fitted(make_problem, whole):
    """S S⁺ W = W: the phantoms give back what they were made from."""
    problem = make_problem(setting="gzsl")
    model = SynC(features="raw", reg=0.01).fit(problem)
    X = whole(problem.train).astype(np.float64)
    seen = np.flatnonzero(problem.classes.seen)
    W = fit_classifiers(X, np.searchsorted(seen, problem.labels), len(seen), one_versus_other, 0.01, 200)
    pool = whole(problem.pool).astype(np.float64)
    assert np.allclose(model.scores(problem.pool)[:, seen], pool @ W.T, atol=1e-3)


def test_an_unseen_class_is_a_mixture_of_phantoms(make_problem, whole):
    problem = make_problem()
    model = SynC(features="raw", sharpness=2.0).fit(problem)
    names = sorted(name for name, seen in zip(problem.classes.names, problem.classes.seen, strict=True) if seen)
    A = np.stack([problem.classes.signatures[problem.classes.names.index(name)] for name in names])
    scores = model.scores(problem.pool)
    for c in np.flatnonzero(problem.classes.unseen):
        (s,) = similarity(problem.classes.signatures[[c]], A, 2.0)
        w = sum(weight * phantom for weight, phantom in zip(s, model.weights_, strict=True))
        assert np.allclose(scores[:, c], whole(problem.pool).astype(np.float64) @ w)


@pytest.mark.parametrize("loss", ["ovo", "cs", "struct"])
def test_every_loss_learns_the_training_images(make_problem, loss):
    problem = make_problem(per_class=10)
    model = SynC(loss=loss, features="raw").fit(problem)
    assert (model.predict(problem.train, among="seen") == problem.classes.named(problem.labels)).mean() > 0.9


def test_the_losses_are_not_the_same(make_problem):
    problem = make_problem()
    one, two, three = (SynC(loss=loss).fit(problem).weights_ for loss in ("ovo", "cs", "struct"))
    assert not np.allclose(one, two)
    assert not np.allclose(two, three)
