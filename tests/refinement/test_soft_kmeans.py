"""Soft k-means on the pool: a step against a loop, what it mends, and what it must survive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.problem import ClassTable
from pren.refinement import REFINEMENTS, ScoredPool, soft_kmeans
from pren.refinement.soft_kmeans import log_densities


def scored(scores, features, candidates=None):
    L = scores.shape[1]
    classes = ClassTable.build([f"c{i}" for i in range(L)], np.eye(L), np.arange(L) < 1)
    return ScoredPool(scores, features, classes, np.arange(L) >= 1 if candidates is None else candidates)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
def test_a_step_is_that_of_a_loop(n, classes, d, seed):
    rng = np.random.default_rng(seed)
    X, q = rng.normal(size=(n, d)), rng.dirichlet(np.ones(classes), size=n)
    means = [sum(q[i, c] * X[i] for i in range(n)) / sum(q[:, c]) for c in range(classes)]
    squares = [[sum((x - mean) ** 2) for mean in means] for x in X]
    variance = sum(q[i, c] * squares[i][c] for i in range(n) for c in range(classes)) / (n * d)
    found = log_densities(X, q)
    if variance > 1e-12:  # else all images stand at the one mean, up to rounding
        assert np.allclose(found, -0.5 * np.array(squares) / variance, atol=1e-6)


def clusters(sizes, doubt=0.9, seed=0):
    """Images around 4 corners, and scores that are right for many of them."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(1, 5), sizes))
    corners = 3 * np.eye(5)[:, 1:]
    features = corners[labels] + 0.3 * rng.normal(size=(len(labels), 4))
    scores = 1.0 * (labels[:, None] == np.arange(5)) + doubt * rng.normal(size=(len(labels), 5))
    return scored(scores, features), labels


def right(scores, labels):
    return np.mean([(scores[labels == c, 1:].argmax(axis=1) + 1 == c).mean() for c in range(1, 5)])


@pytest.mark.parametrize(
    ("sizes", "doubt"), [((30, 30, 30, 30), 0.9), ((60, 6, 60, 6), 0.6)], ids=["equal", "one to ten"]
)
@pytest.mark.parametrize("seed", range(3))
def test_images_that_look_alike_get_the_same_label(sizes, doubt, seed):
    pool, labels = clusters(sizes, doubt, seed)
    assert right(pool.scores, labels) < 0.9
    assert right(soft_kmeans(pool), labels) > 0.95


def test_a_class_that_is_no_candidate_is_never_the_best():
    pool, _ = clusters((10, 10, 10, 10))
    refined = soft_kmeans(pool)
    assert refined.shape == pool.scores.shape
    assert (refined[:, 0] < refined[:, 1:].min(axis=1)).all()


def test_order_of_images_and_classes_and_the_unit_of_features_mean_nothing():
    pool, _ = clusters((12, 8, 10, 10))
    expected = soft_kmeans(pool)
    images, classes = np.random.default_rng(1).permutation(40), np.random.default_rng(2).permutation(5)
    moved = scored(pool.scores[images], 7 * pool.features[images] + 2)
    assert np.allclose(soft_kmeans(moved), expected[images], atol=1e-6)
    turned = scored(pool.scores[:, classes], pool.features, pool.candidates[classes])
    assert np.allclose(soft_kmeans(turned), expected[:, classes], atol=1e-6)


@pytest.mark.parametrize(
    ("scores", "features"),
    [
        (np.zeros((3, 4)), np.ones((3, 2))),
        (np.random.default_rng(0).normal(size=(1, 4)), np.ones((1, 2))),
        (np.random.default_rng(0).normal(size=(5, 2)), np.zeros((5, 3))),
        (1e6 * np.random.default_rng(0).normal(size=(4, 9)), 1e-9 * np.random.default_rng(1).normal(size=(4, 2))),
    ],
    ids=["all alike", "one image", "one candidate", "more classes than images"],
)
def test_little_to_go_by_is_survived(scores, features):
    assert np.isfinite(soft_kmeans(scored(scores, features))).all()


def test_it_is_known_by_its_name():
    assert REFINEMENTS["soft-kmeans"] is soft_kmeans
