"""DCL: which images a class takes, and how its classifiers are trained."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from pren.methods.rivals.dcl import DCL, diverse
from pren.problem import Problem


class TestDiverse:
    @given(st.integers(1, 20), st.integers(1, 25), st.integers(1, 4), st.integers(0, 99))
    def test_as_many_as_wanted_and_there_are(self, n, count, clusters, seed):
        X = np.random.default_rng(seed).normal(size=(n, 2))
        chosen = diverse(X, count, clusters, seed)
        assert len(chosen) == min(n, count)
        assert (np.diff(chosen) > 0).all()
        assert 0 in chosen  # the best one

    def test_every_cluster_gives_its_best(self):
        """Three heaps of 5, 3 and 1; the best images are all of the first heap."""
        heap = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2])
        X = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])[heap] + np.random.default_rng(0).normal(size=(9, 2))
        assert diverse(X, 3, 3, 0).tolist() == [0, 5, 8]
        assert diverse(X, 6, 3, 0).tolist() == [0, 1, 2, 5, 6, 8]
        assert diverse(X, 3, 1, 0).tolist() == [0, 1, 2]

    def test_images_that_are_all_the_same_are_one_cluster(self):
        assert diverse(np.ones((5, 2)), 2, 3, 0).tolist() == [0, 1]


@pytest.fixture
def model(make_problem):
    """Fitted to take from, with classes in the order of neither names nor rows."""

    def build(setting="zsl", **params):
        return DCL(rounds=1, **params).fit(make_problem(setting=setting))

    return build


def test_a_class_takes_its_most_trusted_images(model):
    dcl = model(per_class=2, clusters=1)
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=12) @ np.eye(8)[dcl.classes_.unseen]
    for number in (1, 2):
        images, labels, trust = dcl._select(rng.normal(size=(12, 5)), p, number)
        for label in np.flatnonzero(dcl.classes_.unseen):
            mine = sorted((i for i in range(12) if p[i].argmax() == label), key=lambda i, label=label: -p[i, label])
            assert images[labels == label].tolist() == mine[: 2 * number]
        assert np.array_equal(trust, [p[image, label] for image, label in zip(images, labels, strict=True)])


def test_a_class_that_nobody_is_predicted_as_takes_its_best_image(model):
    dcl = model()
    unseen = np.flatnonzero(dcl.classes_.unseen)
    p = np.zeros((3, 8))
    p[:, unseen] = [[0.7, 0.1, 0.1, 0.1], [0.6, 0.3, 0.05, 0.05], [0.5, 0.2, 0.2, 0.1]]
    images, labels, _ = dcl._select(np.eye(3), p, 1)
    assert sorted(images[labels == unseen[0]]) == [0, 1, 2]
    assert images[labels == unseen[1]].tolist() == [1]
    assert set(labels) == set(unseen)


def test_in_gzsl_every_class_takes_images(model):
    dcl = model("gzsl")
    p = np.random.default_rng(0).dirichlet(np.ones(8), size=20)
    _, labels, _ = dcl._select(np.random.default_rng(1).normal(size=(20, 5)), p, 1)
    assert set(labels) == set(range(8))


@pytest.mark.parametrize("kinds", [2, 3, 5])
def test_classifiers_tell_their_classes_apart(model, kinds):
    dcl = model(penalty=100.0)
    rng = np.random.default_rng(0)
    rows = rng.permutation(8)[:kinds]
    labels = np.repeat(rows, 6)
    X = 3 * np.eye(8)[labels] + 0.1 * rng.normal(size=(len(labels), 8))
    weights, biases = np.full((8, 8), 7.0), np.full(8, 7.0)
    dcl._train(weights, biases, X, labels, np.ones(len(labels)))
    scores = X @ weights[rows].T + biases[rows]
    assert np.array_equal(rows[scores.argmax(axis=1)], labels)
    others = np.setdiff1d(np.arange(8), rows)
    assert (weights[others] == 7).all()
    assert (biases[others] == 7).all()


@pytest.mark.parametrize("kinds", [2, 4])
def test_classifiers_are_the_support_vector_machines(model, kinds):
    dcl = model(penalty=0.7)
    rng = np.random.default_rng(0)
    labels = np.arange(40) % kinds
    X, trust = rng.normal(size=(kinds, 6))[labels] + rng.normal(size=(40, 6)), rng.random(40)
    weights, biases = np.zeros((8, 6)), np.zeros(8)
    dcl._train(weights, biases, X, labels, trust)
    for label in range(kinds):
        machine = LinearSVC(C=0.7, tol=1e-10, max_iter=100_000).fit(X, labels == label, sample_weight=trust)
        assert np.allclose(weights[label], machine.coef_[0], atol=1e-3)
        assert np.isclose(biases[label], machine.intercept_[0], atol=1e-3)


def test_an_image_weighs_as_much_as_it_is_trusted(model):
    """A mistaken label that is hardly trusted moves nothing."""
    dcl = model()
    X = np.vstack([np.repeat(np.eye(3), 4, axis=0), np.eye(3)[:1]])
    labels = np.array([0] * 4 + [1] * 4 + [2] * 4 + [1])

    def weights_with(trust):
        weights, biases = np.zeros((8, 3)), np.zeros(8)
        dcl._train(weights, biases, X[: 12 + (trust is not None)], labels[: 12 + (trust is not None)],
                   np.append(np.ones(12), [] if trust is None else trust))  # fmt: skip
        return weights

    without, little, much = weights_with(None), weights_with(1e-5), weights_with(1.0)
    assert np.allclose(little, without, atol=1e-2)
    assert not np.allclose(much, without, atol=1e-1)


def test_labelled_images_teach_seen_classes(make_problem):
    for setting in ("zsl", "gzsl"):
        problem = make_problem(setting=setting)
        predicted = (
            DCL(penalty=10.0, feature_reg=1e-3, signature_reg=1e-6).fit(problem).predict(problem.train, among="seen")
        )
        assert (predicted == problem.classes.named(problem.labels)).mean() > 0.9


def test_what_can_be_learned_is_learned(arrays):
    data = arrays()
    answers = data.pop("answers")
    problem = Problem.from_arrays(**data)
    assert (DCL(feature_reg=0.1).fit(problem).predict(problem.pool) == problem.classes.named(answers)).mean() > 0.9


def test_another_seed_spreads_otherwise(model):
    rng = np.random.default_rng(0)
    pool, p = rng.normal(size=(200, 5)), rng.dirichlet(np.ones(4), size=200)
    picks = []
    for seed in range(4):
        dcl = model(seed=seed, per_class=6, clusters=3)
        picks.append(dcl._select(pool, p @ np.eye(8)[dcl.classes_.unseen], 1)[0].tolist())
    assert any(pick != picks[0] for pick in picks)
