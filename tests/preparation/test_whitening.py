"""Whitening against loops, and where there is hardly anything to learn from."""

import numpy as np
import pytest

from pren.errors import PrenError
from pren.inputs import ArrayInputs
from pren.preparation.whitening import DIRECTIONS, SHRINKAGE, Whitened
from pren.problem import Problem


def make(n=60, d=6, classes=5, pool=40, seed=0, labels=None):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes) if labels is None else labels
    train, unlabelled = rng.normal(size=(n, d)) + labels[:, None], rng.normal(size=(pool, d))
    return Problem.from_arrays(train, labels, np.eye(classes + 1), unlabelled)


def rooted(row):
    signed = np.array([np.sign(value) * abs(value) ** 0.5 for value in row])
    return signed / sum(signed**2) ** 0.5


def test_it_is_what_a_loop_computes():
    problem = make()
    train = [rooted(row) for row in problem.train[np.arange(60)].double().numpy()]
    pool = [rooted(row) for row in problem.pool[np.arange(40)].double().numpy()]
    within = np.zeros((6, 6))
    for label in range(5):
        mine = [row for row, own in zip(train, problem.labels, strict=True) if own == label]
        centre = sum(mine) / len(mine)
        within += sum(np.outer(row - centre, row - centre) for row in mine)
    within /= len(train)
    shrunk = within + SHRINKAGE * np.trace(within) / 6 * np.eye(6)
    centre = sum([*train, *pool]) / 100
    learned = Whitened.fit(problem)
    M = learned.arrays["map"]
    assert np.allclose(learned.arrays["centre"], centre)
    assert np.allclose(np.linalg.inv(M @ M.T), shrunk)  # of all six directions
    moved = np.stack([(row - centre) @ M for row in [*train, *pool]])
    covariance = sum(np.outer(row, row) for row in moved) / 100
    assert np.allclose(covariance, np.diag(np.diag(covariance)), atol=1e-9)
    assert (np.diff(np.diag(covariance)) <= 1e-9).all(), "the leading direction first"
    expected = np.stack([row / sum(row**2) ** 0.5 for row in moved[60:]])
    assert np.allclose(learned(problem.pool), expected)


def test_the_order_of_the_classes_and_of_the_images_means_nothing():
    problem = make()
    order = np.random.default_rng(1).permutation(60)
    train = ArrayInputs(problem.train[order].numpy())
    shuffled = Problem(train, problem.labels[order], problem.pool, problem.classes)
    one, two = (Whitened.fit(p)(problem.pool) for p in (problem, shuffled))
    assert np.allclose(one @ one.T, two @ two.T)  # directions may be turned round


@pytest.mark.parametrize(
    "problem",
    [
        make(n=5, classes=5),  # one image in every class
        make(n=8, classes=3, d=30),  # fewer images than features
        make(n=20, labels=np.zeros(20, dtype=int), classes=1),
        make(d=1),
    ],
    ids=["one image each", "fewer images than features", "one class", "one feature"],
)
def test_little_to_learn_from_is_enough(problem):
    scaled = Whitened.fit(problem)(problem.pool)
    assert np.isfinite(scaled).all()
    assert np.allclose(np.linalg.norm(scaled, axis=1), 1)


def test_constant_and_zero_features_are_survived():
    for value in (0.0, 3.0):
        problem = Problem.from_arrays(np.full((6, 4), value), np.arange(6) % 2, np.eye(3), np.full((3, 4), value))
        assert np.isfinite(Whitened.fit(problem)(problem.pool)).all()


def test_at_most_so_many_directions_are_kept():
    problem = make(d=130)
    learned = Whitened.fit(problem)
    assert learned(problem.pool).shape == (40, DIRECTIONS)
    assert learned.width(130) == DIRECTIONS


def test_it_comes_back_to_the_bit():
    problem = make()
    learned = Whitened.fit(problem)
    assert np.array_equal(Whitened.restore(learned.arrays, 6)(problem.pool), learned(problem.pool))
    with pytest.raises(ValueError, match="not that of 5 features"):
        Whitened.restore(learned.arrays, 5)


def test_too_many_features_are_refused():
    problem = make(n=4, pool=2, d=4097, classes=2)
    with pytest.raises(PrenError, match="at most 4096 features, not 4097"):
        Whitened.fit(problem)
