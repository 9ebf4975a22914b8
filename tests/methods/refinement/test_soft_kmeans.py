"""Soft k-means: a step against a loop, what it mends, and what it must survive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from pren.methods.formulas import on_arrays
from pren.methods.refinement import REFINEMENTS, SoftKMeans
from pren.methods.refinement.sinkhorn import even_offsets, log_masses
from pren.methods.refinement.soft_kmeans import maximise


def refined(pool):
    return on_arrays(SoftKMeans.fit(pool), pool.scores, pool.features)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(0, 99))
def test_a_step_is_that_of_a_loop(scored, n, classes, d, held, seed):
    rng = np.random.default_rng(seed)
    X, labelled = rng.normal(size=(n, d)), rng.normal(size=(held, d))
    pool = scored(np.zeros((n, classes + 1)), X, np.arange(classes + 1) < classes, labelled, [0] * held)
    q = rng.dirichlet(np.ones(classes), size=n)
    weights = np.vstack([q, np.tile(np.eye(classes)[0], (held, 1))])
    everybody = [*X, *labelled]
    means = [
        sum(w[c] * x for w, x in zip(weights, everybody, strict=True)) / sum(weights[:, c]) for c in range(classes)
    ]
    squares = [[sum((x - mean) ** 2) for mean in means] for x in everybody]
    variance = sum(weights[i, c] * squares[i][c] for i in range(n + held) for c in range(classes)) / ((n + held) * d)
    densities = np.empty_like(q)
    found, spread = maximise(pool, q, densities)
    assert np.allclose(found, means)
    if variance > 1e-12:  # else all images stand at the one mean, up to rounding
        assert np.isclose(spread, variance)
        assert np.allclose(densities, -0.5 * np.array(squares[:n]) / variance, atol=1e-6)


def test_masses_are_those_of_a_loop(monkeypatch):
    rng = np.random.default_rng(0)
    densities, offsets = 3 * rng.normal(size=(7, 4)), rng.normal(size=4)
    expected = np.zeros(4)
    for row in densities:
        weights = np.exp(row + offsets)
        expected += weights / weights.sum()
    assert np.allclose(np.exp(log_masses(densities, offsets)), expected)
    monkeypatch.setattr("pren.methods.refinement.base.BLOCK_NUMBERS", 9)  # two images at a time
    assert np.allclose(np.exp(log_masses(densities, offsets)), expected)


def settled(densities, balanced, balance=1.0):
    even = np.zeros(densities.shape[1])
    for _ in range(100):
        offsets, even = even_offsets(densities, balanced, balance, even)
    return offsets, even


def test_potentials_make_classes_equal():
    densities = 3 * np.random.default_rng(0).normal(size=(30, 4)) + np.arange(4)
    found, even = settled(densities, np.ones(4, dtype=bool))
    assert np.allclose(np.exp(log_masses(densities, found)), 30 / 4)
    half, _ = settled(densities, np.ones(4, dtype=bool), 0.5)
    assert np.allclose(half, 0.5 * even)


def test_a_class_far_from_all_images_is_reached():
    densities = np.random.default_rng(0).normal(size=(30, 4)) - [0, 0, 0, 5000.0]
    found, _ = settled(densities, np.ones(4, dtype=bool))
    assert np.allclose(np.exp(log_masses(densities, found)), 30 / 4)


@pytest.mark.parametrize("balance", [0.5, 1.0])
def test_in_gzsl_unseen_classes_are_balanced_among_themselves(balance):
    densities = 3 * np.random.default_rng(0).normal(size=(30, 5)) + np.arange(5)
    balanced = np.array([False, True, True, False, True])
    before = np.exp(log_masses(densities, np.zeros(5)))
    found, even = settled(densities, balanced, balance)
    after = np.exp(log_masses(densities, found))
    assert not found[~balanced].any()
    assert np.isclose(after[balanced].sum(), before[balanced].sum(), rtol=1e-2)  # after five iterations
    assert np.ptp((found - balance * even)[balanced]) < 1e-9  # all are moved alike
    if balance == 1:
        assert np.allclose(after[balanced], before[balanced].sum() / 3)


@pytest.mark.parametrize(
    ("sizes", "doubt"), [((30, 30, 30, 30), 0.9), ((60, 6, 60, 6), 0.6)], ids=["equal", "one to ten"]
)
@pytest.mark.parametrize("seed", range(3))
def test_images_that_are_alike_get_the_same_label(sizes, doubt, seed, clusters, right):
    pool, labels = clusters(sizes, doubt, seed)
    assert right(pool.scores, labels) < 0.9
    assert right(refined(pool), labels) > 0.95


def test_balance_draws_classes_towards_equal_size(scored):
    """One class has ten times the images of each other one, and none is quite apart."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(1, 5), (200, 20, 20, 20))
    features = 2 * np.eye(5)[labels] + rng.normal(size=(260, 5))
    scores = 1.0 * (labels[:, None] == np.arange(5)) + 0.5 * rng.normal(size=(260, 5))
    spread = []
    for balance in (0.0, 0.5, 1.0):
        found = refined(scored(scores, features, balance=balance))[:, 1:]
        spread.append(np.ptp(softmax(found, axis=1).sum(axis=0)))
    assert spread[0] > spread[1] > spread[2]
    assert spread[2] < 2


def test_labelled_images_hold_the_centres_of_their_class(scored):
    """A seen class whose images in the pool are taken for another one by the method."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 20)
    features = 4.0 * np.eye(2)[labels] + 0.3 * rng.normal(size=(40, 2))
    scores = np.array([0.0, 1.0]) + 0.3 * rng.normal(size=(40, 2))
    everything = np.ones(2, dtype=bool)
    held = [4.0, 0.0] + 0.3 * rng.normal(size=(30, 2))
    alone = SoftKMeans.fit(scored(scores, features, everything))
    model = SoftKMeans.fit(scored(scores, features, everything, held, [0] * 30))
    assert (on_arrays(model, scores, features).argmax(axis=1) == labels).mean() > 0.95
    assert (on_arrays(alone, scores, features).argmax(axis=1) == labels).mean() < 0.95
    assert np.abs(model.arrays["means"] - 4.0 * np.eye(2)).max() < 0.3


def test_scores_are_those_of_a_loop(clusters):
    pool, _ = clusters((4, 3, 3, 3), balance=0.5)
    model = SoftKMeans.fit(pool)
    found, learned = on_arrays(model, pool.scores, pool.features), model.arrays
    for i, x in enumerate(pool.features):
        expected = [
            -sum((x - mean) ** 2) / (2 * learned["variance"][0]) + offset
            for mean, offset in zip(learned["means"], learned["offsets"], strict=True)
        ]
        assert np.allclose(found[i], [min(expected) - 1, *expected])  # the first class is the only other one


def test_a_class_that_is_no_candidate_is_never_the_best(scored):
    rng = np.random.default_rng(0)
    scores, features = rng.normal(size=(9, 5)), rng.normal(size=(9, 3))
    pool = scored(scores, features, np.array([False, True, False, True, True]))
    found = refined(pool)
    others = found[:, ~pool.candidates]
    assert (others.max(axis=1) < found[:, pool.candidates].min(axis=1)).all()
    assert np.array_equal(others.argmax(axis=1), scores[:, ~pool.candidates].argmax(axis=1))  # as the method has it


@pytest.mark.parametrize("balance", [0.0, 0.7])
def test_order_of_images_and_classes_and_the_unit_of_features_mean_nothing(balance, scored, clusters):
    pool, _ = clusters((12, 8, 10, 10), balance=balance)
    expected = refined(pool)
    images, classes = np.random.default_rng(1).permutation(40), np.random.default_rng(2).permutation(5)
    moved = scored(pool.scores[images], 7 * pool.features[images] + 2, balance=balance)
    assert np.allclose(refined(moved)[:, 1:], expected[images][:, 1:], atol=1e-6)
    turned = scored(pool.scores[:, classes], pool.features, pool.candidates[classes], balance=0.0)
    plain, _ = clusters((12, 8, 10, 10))
    assert np.allclose(refined(turned), refined(plain)[:, classes], atol=1e-6)


def test_many_images_are_taken_in_blocks(monkeypatch, clusters):
    pool, _ = clusters((12, 8, 10, 10), balance=0.5)
    whole = refined(pool)
    monkeypatch.setattr("pren.methods.refinement.base.BLOCK_NUMBERS", 30)
    assert np.allclose(refined(pool), whole)


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
@pytest.mark.parametrize("name", [name for name in REFINEMENTS if name != "none"])
@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_little_to_go_by_is_survived(scores, features, name, balance, scored):
    pool = scored(scores, features, balance=balance)
    assert np.isfinite(on_arrays(REFINEMENTS[name].fit(pool), scores, features)).all()


def test_it_is_known_by_its_name():
    assert REFINEMENTS["soft-kmeans"] is SoftKMeans


def test_what_does_not_belong_together_is_refused(clusters):
    pool, _ = clusters((3, 3, 3, 3))
    arrays = SoftKMeans.fit(pool).arrays
    again = SoftKMeans.restore(arrays, pool.candidates, 4).arrays
    assert all(np.array_equal(again[name], arrays[name]) for name in SoftKMeans.learns)
    with pytest.raises(ValueError, match=r"holds \['means'\]"):
        SoftKMeans.restore({"means": arrays["means"]}, pool.candidates, 4)
    with pytest.raises(ValueError, match="means of the refinement cannot be of shape"):
        SoftKMeans.restore(arrays, pool.candidates, 5)
    with pytest.raises(ValueError, match="means of the refinement cannot be of shape"):
        SoftKMeans.restore(arrays, np.ones(5, dtype=bool), 4)
    with pytest.raises(ValueError, match="positive"):
        SoftKMeans.restore({**arrays, "variance": np.zeros(1)}, pool.candidates, 4)
