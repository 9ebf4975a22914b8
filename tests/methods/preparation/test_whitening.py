"""Whitening against loops, and where there is hardly anything to learn from."""

import numpy as np
import pytest
import torch
from refusals import refused

from pren.methods.formulas import on_arrays
from pren.methods.preparation import whitening
from pren.methods.preparation.whitening import Whitened, distance_by_chance
from pren.problem import Problem


def make(n=60, d=6, classes=5, pool=40, seed=0, labels=None, unseen=1, shift=0.0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes) if labels is None else labels
    train, unlabelled = rng.normal(size=(n, d)) + labels[:, None], rng.normal(size=(pool, d))
    return Problem.from_arrays(train, labels, np.eye(classes + unseen), unlabelled + shift)


def rooted(row):
    signed = np.array([np.sign(value) * abs(value) ** 0.5 for value in row])
    return signed / sum(signed**2) ** 0.5


def plain_distance(means, within, sizes, pool_mean, pool_size, unseen):
    """What `distance_by_chance` is, number by number."""
    S, centre = len(means), sum(means) / len(means)
    between = sum(sum((mean - centre) ** 2) for mean in means) / (S - 1) - sum(within / size for size in sizes) / S
    expected = max(between, 0) / S + max(between, 0) / unseen + within / sum(sizes) + within / pool_size
    return sum((pool_mean - centre) ** 2) / expected


LOOPS = {
    "many images": (make(n=90), 0.1),
    "few images": (make(n=20, shift=2.0), 6 / 20),
    "another kind of images": (make(shift=9 * np.array([-1, 1, -1, 1, -1, 1])), 0.1),
}


@pytest.mark.parametrize(("problem", "share"), LOOPS.values(), ids=LOOPS.keys())
def test_it_is_what_a_loop_computes(problem, share):
    n, d = len(problem.train), 6
    train = [rooted(row) for row in problem.train[np.arange(n)].double().numpy()]
    pool = [rooted(row) for row in problem.pool[np.arange(40)].double().numpy()]
    within, means, sizes = np.zeros((d, d)), [], []
    for label in range(5):
        mine = [row for row, own in zip(train, problem.labels, strict=True) if own == label]
        means.append(sum(mine) / len(mine))
        sizes.append(len(mine))
        within += sum(np.outer(row - means[-1], row - means[-1]) for row in mine)
    within /= n
    apart = plain_distance(means, np.trace(within), sizes, sum(pool) / 40, 40, 1)
    assert (apart > 4) == (problem is LOOPS["another kind of images"][0])
    shrinkage = share * max(1, apart / 4) ** 2
    shrunk = within + shrinkage * np.trace(within) / d * np.eye(d)
    centre = sum([*train, *pool]) / (n + 40)
    learned = Whitened.fit(problem)
    M = learned.arrays["map"]
    assert np.allclose(learned.arrays["centre"], centre)
    assert np.allclose(np.linalg.inv(M @ M.T), shrunk)  # of all six directions
    moved = np.stack([(row - centre) @ M for row in [*train, *pool]])
    covariance = sum(np.outer(row, row) for row in moved) / (n + 40)
    assert np.allclose(covariance, np.diag(np.diag(covariance)), atol=1e-9)
    assert (np.diff(np.diag(covariance)) <= 1e-9).all(), "the leading direction first"
    expected = np.stack([row / sum(row**2) ** 0.5 for row in moved[n:]])
    assert np.allclose(learned.of(problem.pool), expected)


def drawn(rng, sizes, d=8, between=1.0, within=1.0):
    """Images of some classes, the classes drawn themselves."""
    centres = np.sqrt(between) * rng.normal(size=(len(sizes), d))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return centres[labels] + np.sqrt(within) * rng.normal(size=(len(labels), d)), labels


def distance(rng, sizes, pool_sizes, shift=0.0, between=1.0, within=1.0):
    """`distance_by_chance` of images that were drawn so, and of the same number by number."""
    train, labels = drawn(rng, sizes, between=between, within=within)
    pool, _ = drawn(rng, pool_sizes, between=between, within=within)
    means = np.stack([train[labels == label].mean(axis=0) for label in range(len(sizes))])
    variance = ((train - means[labels]) ** 2).sum() / len(train)
    given = (means, variance, np.array(sizes, dtype=float), pool.mean(axis=0) + shift, len(pool), len(pool_sizes))
    assert np.isclose(distance_by_chance(*given), plain_distance(*given))
    return distance_by_chance(*given)


@pytest.mark.parametrize(
    "case",
    [
        {"sizes": [20] * 12, "pool_sizes": [15] * 5},
        {"sizes": [10] * 30, "pool_sizes": [15]},
        {"sizes": [20] * 12, "pool_sizes": [15] * 5, "between": 0.01},  # hardly any classes to speak of
        {"sizes": [4, 30] * 8, "pool_sizes": [15] * 5},
    ],
)
def test_classes_of_the_same_kind_are_as_far_as_chance_has_it(case):
    rng = np.random.default_rng(0)
    drawn = [distance(rng, **case) for _ in range(300)]
    assert np.isclose(np.mean(drawn), 1, atol=0.25)
    assert np.mean(np.array(drawn) > 4) < 0.01
    assert np.mean([distance(rng, **case, shift=3.0) for _ in range(50)]) > 4


def test_one_seen_class_leaves_nothing_to_compare():
    one, many = np.ones((1, 3)), np.ones((4, 3))
    assert distance_by_chance(one, 1.0, np.array([5.0]), np.full(3, 9.0), 10, 2) == 1
    assert distance_by_chance(many, 0.0, np.ones(4), np.full(3, 9.0), 10, 2) == 1, "no variance at all"


@pytest.mark.parametrize("what", ["labelled images", "pool", "classes"])
def test_no_order_means_anything(what):
    problem = make()
    rng = np.random.default_rng(1)
    train, labels = problem.train[np.arange(60)].numpy(), problem.labels
    pool, signatures = problem.pool[np.arange(40)].numpy(), problem.classes.signatures
    if what == "labelled images":
        order = rng.permutation(60)
        train, labels = train[order], labels[order]
    elif what == "pool":
        pool = rng.permutation(pool)
    else:
        order = rng.permutation(6)
        labels, signatures = np.argsort(order)[labels], signatures[order]
    shuffled = Problem.from_arrays(train, labels, signatures, pool)
    one, two = (Whitened.fit(p).of(problem.pool) for p in (problem, shuffled))
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
    scaled = Whitened.fit(problem).of(problem.pool)
    assert np.isfinite(scaled).all()
    assert np.allclose(np.linalg.norm(scaled, axis=1), 1)


@pytest.mark.parametrize("value", [0.0, 0.1, 3.0, -7.0])
def test_features_that_are_all_the_same_say_nothing(value):
    """What rounding leaves of them has no direction that could be brought to length 1."""
    problem = Problem.from_arrays(np.full((7, 5), value), np.arange(7) % 2, np.eye(3), np.full((4, 5), value))
    learned = Whitened.fit(problem)
    assert not learned.of(problem.pool).any()
    assert np.allclose(np.linalg.norm(on_arrays(learned, np.arange(1.0, 6)[None])), 1), "another image"


def test_a_constant_feature_among_others_is_survived():
    rng = np.random.default_rng(0)
    train, pool = rng.normal(size=(20, 4)), rng.normal(size=(9, 4))
    train[:, 2] = pool[:, 2] = 0
    learned = Whitened.fit(Problem.from_arrays(train, np.arange(20) % 4, np.eye(5), pool))
    assert np.allclose(np.linalg.norm(on_arrays(learned, pool), axis=1), 1)


@pytest.mark.parametrize(
    ("classes", "unseen", "d", "kept"), [(5, 1, 30, 10), (20, 3, 30, 22), (20, 3, 12, 12), (3, 120, 130, 100)]
)
def test_one_direction_less_than_classes_is_kept_but_ten_at_least_and_a_hundred_at_most(classes, unseen, d, kept):
    problem = make(d=d, classes=classes, unseen=unseen)
    learned = Whitened.fit(problem)
    assert learned.of(problem.pool).shape == (40, kept)
    assert learned.width(d) == kept


def test_it_comes_back_to_the_bit():
    problem = make()
    learned = Whitened.fit(problem)
    assert np.array_equal(Whitened.restore(learned.arrays, 6).of(problem.pool), learned.of(problem.pool))
    with pytest.raises(ValueError, match="cannot be of shape"):
        Whitened.restore(learned.arrays, 5)


def test_too_many_features_are_refused():
    problem = make(n=4, pool=2, d=8193, classes=2)
    with refused("features-too-many"):
        Whitened.fit(problem)


@pytest.mark.parametrize(("d", "kept", "flat"), [(12, 10, False), (60, 10, False), (60, 40, False), (30, 10, True)])
def test_many_features_have_the_same_directions(d, kept, flat):
    rng = np.random.default_rng(d + kept)
    within = np.zeros((d, d)) if flat else np.cov(rng.normal(size=(d // 2, d)) * rng.uniform(0.1, 2, d), rowvar=False)
    spread = np.cov(rng.normal(size=(3 * d, d)) * np.linspace(1, 3, d), rowvar=False)
    few, many = (way(within, spread, 0.3, kept) for way in (whitening._leading, whitening._leading_of_many))
    assert few.shape == many.shape == (d, kept)
    points = rng.normal(size=(20, d))
    signs = np.sign((few * many).sum(axis=0))
    assert np.allclose(points @ few, points @ many * signs, atol=1e-8)
    assert np.array_equal(many, whitening._leading_of_many(within, spread, 0.3, kept)), "to the bit"


def test_few_inputs_give_the_same_lengths_and_angles_in_their_span(monkeypatch):
    problem, other = make(n=20, classes=4, d=50, pool=9), np.random.default_rng(1).normal(size=(7, 50))
    narrow = Whitened.fit(problem)
    monkeypatch.setattr(whitening, "_span", lambda problem: np.eye(50))
    wide = Whitened.fit(problem)
    assert not np.array_equal(narrow.arrays["map"], wide.arrays["map"]), "two ways"
    for inputs in (problem.pool[np.arange(9)].numpy(), other):
        one, two = (on_arrays(each, inputs) for each in (narrow, wide))
        assert np.allclose(one @ one.T, two @ two.T, atol=1e-7)


def test_many_features_give_the_same_lengths_and_angles(make_problem, monkeypatch, whole):
    problem = make_problem(shape=(40,), per_class=9)
    made = []
    for wide in (whitening.WIDE, 10):
        monkeypatch.setattr(whitening, "WIDE", wide)
        made.append(Whitened.fit(problem).forward(torch.from_numpy(whole(problem.pool)).double()).numpy())
    assert np.allclose(made[0] @ made[0].T, made[1] @ made[1].T, atol=1e-7)
    assert not np.array_equal(*made), "two ways"


@pytest.mark.slow
def test_many_features_that_are_all_equal():
    problem = Problem.from_arrays(np.ones((8, 1600)), np.arange(8) % 4, np.eye(6), np.ones((2, 1600)))
    assert np.isfinite(Whitened.fit(problem).of(problem.pool)).all()
