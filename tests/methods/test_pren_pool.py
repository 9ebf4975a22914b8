"""PrEN-Pool: its formulas against plain loops; what it does is in test_pren_pool_problems.py."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from pren.methods import pren_pool
from pren.methods.class_statistics import class_statistics
from pren.methods.pren_pool import Mixture, PrENPool, Prior, adapt, held_back, moved_to, shown, variance_within
from pren.methods.pren_vote import PrENVote
from pren.methods.refinement.sinkhorn import even_offsets
from pren.methods.rivals.eszsl import ESZSL
from pren.trust import Familiarity, assess

sizes = st.tuples(st.integers(1, 10), st.integers(1, 4), st.integers(0, 3), st.integers(1, 3), st.integers(0, 99))


def given_pool(N, d, seen, unseen, seed):
    """A pool, and a prior of seen and unseen classes in any order, as far apart as the images of one."""
    rng = np.random.default_rng(seed)
    C = seen + unseen
    counts = rng.permutation(np.concatenate([rng.integers(1, 6, seen), np.zeros(unseen)]))
    root = rng.normal(size=(unseen, unseen + 1))
    X = rng.normal(size=(N, d)) * 2
    return X, Prior(rng.normal(size=(C, d)), counts, root @ root.T + 0.1 * np.eye(unseen), rng.uniform(0.5, 2))


def plain_doubts(prior):
    unsure = iter(np.diag(prior.covariance))
    return [prior.variance / count if count else next(unsure) for count in prior.counts]


def plain_adapt(X, prior, evidence, caution, balance, steps):
    """Image by image, class by class; unseen classes learn from an image like their own, with so much noise."""
    (N, d), C = X.shape, len(prior.means)
    unseen = [c for c in range(C) if prior.counts[c] == 0]
    means, σ2, potentials = prior.means, prior.variance, np.zeros(C)
    v = np.array([σ2 + doubt for doubt in plain_doubts(prior)])
    offsets = np.array([-d / 2 * np.log(v[c]) for c in range(C)])
    for step in range(steps):
        softness = 0.5 if step < 5 else 1.0
        scores = np.array([[-sum((x - means[c]) ** 2) / 2 / v[c] + offsets[c] for c in range(C)] for x in X])
        even, potentials = even_offsets(softness * scores, prior.counts == 0, balance, potentials)
        q = np.exp(softness * scores + even)
        q /= q.sum(axis=1, keepdims=True)
        means, doubts = np.empty((C, d)), np.empty(C)
        for c in range(C):
            if c not in unseen:
                weight = prior.counts[c] + sum(evidence * q[i, c] for i in range(N))
                total = prior.counts[c] * prior.means[c] + sum(evidence * q[i, c] * X[i] for i in range(N))
                means[c], doubts[c] = total / weight, σ2 / weight
        likely = [sum(q[i, c] * X[i] for i in range(N)) / sum(q[:, c]) for c in unseen]
        noise = np.diag([σ2 / (evidence * sum(q[:, c])) for c in unseen])
        gain = prior.covariance @ np.linalg.inv(prior.covariance + noise)
        means[unseen] = prior.means[unseen] + gain @ (np.array(likely) - prior.means[unseen])
        doubts[unseen] = np.diag(prior.covariance - gain @ prior.covariance)
        spread = sum(q[i, c] * (sum((X[i] - means[c]) ** 2) + d * doubts[c]) for i in range(N) for c in range(C))
        σ2 = spread / (N * d)
        v, offsets = np.full(C, σ2), np.array([-caution * d * doubts[c] / 2 / σ2 for c in range(C)])
    return means, σ2, offsets + even


@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize("balance", [0.0, 0.6])
@settings(max_examples=20)
@given(size=sizes, evidence=st.floats(0.05, 1), caution=st.floats(0, 1))
def test_steps_are_those_of_plain_loops(steps, balance, size, evidence, caution):
    X, prior = given_pool(*size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pren_pool, "STEPS", steps)
        fitted = adapt(X, prior, evidence, caution, balance)
    means, variance, offsets = plain_adapt(X, prior, evidence, caution, balance, steps)
    assert np.allclose(fitted.means, means, rtol=1e-6, atol=1e-6)
    assert np.allclose(fitted.variances, variance, rtol=1e-6)
    assert np.allclose(fitted.offsets, offsets, rtol=1e-6, atol=1e-6)


def test_a_large_pool_is_taken_in_pieces(monkeypatch):
    X, prior = given_pool(10, 3, 2, 2, 0)
    whole = adapt(X, prior, 0.2, 0.5, 0.5)
    monkeypatch.setattr("pren.methods.refinement.base.BLOCK_NUMBERS", 12)  # three images at a time
    for part, expected in zip(adapt(X, prior, 0.2, 0.5, 0.5), whole, strict=True):
        assert np.allclose(part, expected)


@given(size=sizes, evidence=st.floats(0.05, 1), n=st.integers(1, 6))
def test_labels_that_a_person_gives_are_learned_from_one_by_one(size, evidence, n):
    """As observations of a Gaussian process with noise σ² / evidence, each with its gain."""
    X, prior = given_pool(*size)
    rng, C = np.random.default_rng(n), len(prior.means)
    images, places = rng.normal(size=(n, X.shape[1])), rng.integers(0, C, n)
    unseen = [c for c in range(C) if prior.counts[c] == 0]
    means, counts, covariance = prior.means.copy(), prior.counts.copy(), prior.covariance
    for x, c in zip(images, places, strict=True):
        if c in unseen:
            column = covariance[unseen.index(c)]
            gain = column / (column[unseen.index(c)] + prior.variance / evidence)
            means[unseen] += np.outer(gain, x - means[c])
            covariance = covariance - np.outer(gain, column)
        else:
            means[c] = (counts[c] * means[c] + evidence * x) / (counts[c] + evidence)
            counts[c] += evidence
    found = shown(images, places, prior, evidence)
    assert np.allclose(found.means, means)
    assert np.allclose(found.counts, counts)
    assert np.allclose(found.covariance, covariance)


def test_scores_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    X, means, variances, offsets = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), rng.random(4), rng.normal(size=4)
    expected = [[-sum((x - means[c]) ** 2) / (2 * variances[c]) + offsets[c] for c in range(4)] for x in X]
    assert np.allclose(Mixture(means, variances, offsets).scores(X), expected)


@given(sizes)
def test_doubts_are_those_of_a_loop(size):
    _, prior = given_pool(*size)
    assert np.allclose(prior.doubts(), plain_doubts(prior))


def test_a_class_is_held_back_by_what_its_mean_may_be_off():
    """E[-‖x - μ‖² / 2σ²] is less than that of the expected μ by so much."""
    rng = np.random.default_rng(0)
    x, mean, doubt, variance = rng.normal(size=3), rng.normal(size=3), 0.7, 1.5
    drawn = mean + np.sqrt(doubt) * rng.normal(size=(400_000, 3))
    expected = (-((x - drawn) ** 2).sum(axis=1) / (2 * variance)).mean()
    (offset,) = held_back(np.array([doubt]), 1.0, 3, variance)
    assert np.isclose(-((x - mean) ** 2).sum() / (2 * variance) + offset, expected, atol=0.01)
    assert np.allclose(held_back(np.array([doubt, 0]), 0.25, 3, variance), [offset / 4, 0])


def test_more_caution_takes_images_from_the_class_that_is_less_certain():
    X = np.random.default_rng(0).normal(size=(60, 4))
    prior = Prior(np.stack([np.full(4, 0.3), np.full(4, -0.3)]), np.zeros(2), np.diag([0.01, 1.0]), 1.0)
    taken = [(adapt(X, prior, 0.01, caution, 0.0).scores(X).argmax(axis=1) == 1).sum() for caution in (0, 0.5, 1)]
    assert taken[0] > taken[1] > taken[2]


def test_balance_makes_shares_more_equal():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(50, 2)) + 1, rng.normal(size=(10, 2)) - 1])
    prior = Prior(np.array([[1.0, 1], [-1, -1]]), np.zeros(2), 0.1 * np.eye(2), 1.0)
    uneven = []
    for balance in (0.0, 0.5, 1.0):
        share = (adapt(X, prior, 0.2, 0.5, balance).scores(X).argmax(axis=1) == 0).mean()
        uneven.append(abs(share - 0.5))
    assert uneven[0] > uneven[1] > uneven[2]


def test_a_class_that_gets_nothing_is_where_it_was_expected():
    """In any unit: σ² of more than 4 once was too much to be divided by nothing."""
    for unit in (1e-3, 1.0, 1e3):
        X = unit * np.random.default_rng(0).normal(size=(20, 3))
        means = unit * np.array([[0.0, 0, 0], [1e3, 0, 0]])
        prior = Prior(means, np.zeros(2), unit**2 * np.eye(2), unit**2)
        after = adapt(X, prior, 0.2, 0.5, 0.0)
        assert np.allclose(after.means[1], means[1])
        assert (after.scores(X).argmax(axis=1) == 0).all()
        assert np.isclose(after.variances[0], unit**2, rtol=0.5)


def test_a_pool_of_equal_images_leaves_some_variance():
    X = np.ones((5000, 3))
    after = adapt(X, Prior(np.zeros((2, 3)), np.zeros(2), np.array([[1, 0.5], [0.5, 2]]), 1.0), 1.0, 0.5, 0.0)
    assert 1e-7 < after.variances[0] < 1e-3
    assert np.isfinite(after.scores(X)).all()


# --- the variance within classes


def test_the_variance_within_is_unbiased():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 3], [2, 3, 1])  # class 2 has no image, class 3 tells nothing
    found = []
    for _ in range(4000):
        X = 10 * labels[:, None] + 3 * rng.normal(size=(6, 2))
        found.append(variance_within(class_statistics(X, labels, 4)[1], np.array([2.0, 3, 0, 1]), X))
    assert np.isclose(np.mean(found), 9, rtol=0.05)


def test_the_variance_within_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    labels, X = rng.integers(0, 3, 20), rng.normal(size=(20, 4)) + 5
    sums = [sum((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum() for c in range(3)]
    counts = np.bincount(labels).astype(float)
    expected = sum(sums) / 4 / sum(count - 1 for count in counts)
    assert np.isclose(variance_within(class_statistics(X, labels, 3)[1], counts, X), expected)


def test_where_no_class_has_two_images_it_is_half_of_the_variance_of_all():
    X = np.random.default_rng(0).normal(size=(5, 3))
    assert np.isclose(variance_within(np.zeros((5, 3)), np.ones(5), X), X.var(axis=0).mean() / 2)
    assert variance_within(np.zeros((1, 3)), np.ones(1), X[:1]) == 1.0


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8, 1e-8])
@pytest.mark.parametrize("each", [1, 7])
def test_images_that_are_all_the_same_have_no_variance_of_rounding(value, each):
    X, labels = np.full((3 * each, 3), value), np.repeat(np.arange(3), each)
    _, variances = class_statistics(X, labels, 3)
    assert variance_within(variances, np.full(3, float(each)), X) == 1.0


# --- a pool that lies elsewhere


@given(sizes, st.floats(0, 30))
def test_moving_is_that_of_a_loop(size, shift):
    X, prior = given_pool(*size)
    X += shift
    (N, d), C = X.shape, len(prior.means)
    centre, middle = sum(prior.means) / C, sum(X) / N
    unsure = sum(prior.covariance.ravel()) + sum(prior.variance / count for count in prior.counts if count)
    between = sum(sum((mean - centre) ** 2) for mean in prior.means) / (C * d)
    apart = sum((middle - centre) ** 2) / d / (unsure / C**2 + between / C + prior.variance / N)
    moved, found = moved_to(X, prior)
    assert np.isclose(found, apart)
    if apart <= 4:
        assert moved is prior
        return
    for c in range(C):
        assert np.allclose(moved.means[c], prior.means[c] + (1 - 1 / apart) * (middle - centre))
    trust = max(4 / apart, 0.25 if any(prior.counts) else 0.1)
    assert np.allclose(moved.counts, [count * trust for count in prior.counts])
    assert np.allclose(moved.covariance, prior.covariance / trust)
    assert moved.variance == prior.variance


@pytest.mark.parametrize(("seen", "unseen", "doubt"), [(0, 8, 0.05), (0, 8, 1.0), (3, 5, 0.5), (30, 10, 0.5)])
def test_a_pool_of_the_expected_classes_is_about_as_far_as_expected(seen, unseen, doubt):
    rng, C, d = np.random.default_rng(0), seen + unseen, 20
    covariance = doubt * (0.3 + 0.7 * np.eye(unseen))
    found = []
    for _ in range(200):
        counts = np.concatenate([np.full(seen, 10.0), np.zeros(unseen)])
        prior = Prior(rng.normal(size=(C, d)), counts, covariance, 1.0)
        off = rng.normal(size=(C, d)) / np.sqrt(10)
        off[seen:] = np.linalg.cholesky(covariance) @ rng.normal(size=(unseen, d))
        labels = rng.choice(C, 200, p=rng.dirichlet(np.ones(C)))  # nobody knows the sizes of the classes
        found.append(moved_to((prior.means + off)[labels] + rng.normal(size=(200, d)), prior)[1])
    assert np.isclose(np.mean(found), 1, atol=0.3)
    assert np.mean(np.array(found) > 4) <= 0.01


def test_more_classes_than_can_be_compared(make_problem, monkeypatch, caplog):
    problem = make_problem(n_seen=9, n_unseen=5)
    monkeypatch.setattr("pren.methods.pren_vote.MANY_NAMED", 4)
    with caplog.at_level("INFO"):
        PrENVote(heads=2).fit(problem)
    assert "all 5 unseen classes" in caplog.text
    monkeypatch.setattr("pren.methods.pren_vote.MOST_NAMED", 4)
    voted, pooled = PrENVote().fit(problem), PrENPool().fit(problem)
    assert "no vote on the names of 5 classes" in caplog.text
    assert not voted.votes_.any()
    assert voted.predict(problem.pool).tolist() == pooled.predict(problem.pool).tolist()
    for room in ("methods.pren_pool", "trust.familiarity"):
        monkeypatch.setattr(f"pren.{room}.MOST_UNSEEN", 4)
    for method in (PrENPool(), PrENVote()):
        with refused("classes-too-many"):
            method.fit(problem)
    assert Familiarity.learn(problem) is None
    assert assess(ESZSL().fit(problem), problem, 2).forecast.high > 0, "without familiarity"
