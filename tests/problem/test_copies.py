"""Copies in a pool: the same inputs and nearly the same ones, each with one twin; doubling a pool changes no label."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pren.problem import UNKNOWN, Answers, Problem
from pren.problem.copies import (
    NEAR,
    as_twins,
    counted_once,
    labelled_twins,
    near_pairs,
    twins_in,
    unit_rows,
    usual_distance,
)
from pren.problem.inputs import ArrayInputs

WIDE = 64  # features, in which no two inputs are near each other by chance


def made(pool_rows=12, seed=0, setting="zsl"):
    rng = np.random.default_rng(seed)
    centres, labels = rng.normal(size=(7, WIDE)), np.repeat(np.arange(4), 5)
    train, pool = (
        centres[rows] + rng.normal(size=(len(rows), WIDE)) for rows in (labels, np.arange(pool_rows) % 3 + 4)
    )
    return Problem.from_arrays(train.astype("f4"), labels, rng.random((7, 5)), pool.astype("f4"), setting=setting)


def with_pool(problem, pool, given_labels=None):
    return replace(problem, pool=ArrayInputs(np.asarray(pool, dtype=np.float32)), given=given_labels)


@pytest.fixture(scope="module")
def problem():
    return made()


@pytest.fixture(scope="module")
def pool(problem, whole):
    return whole(problem.pool)


def plain_usual(rows, labels):
    """The tenth percentile of the distances to the nearest other input of the class, pair by pair."""
    unit = [row / sum(row**2) ** 0.5 for row in rows.astype(np.float64)]
    nearest = []
    for i, one in enumerate(unit):
        others = [np.linalg.norm(one - unit[j]) for j in range(len(unit)) if j != i and labels[j] == labels[i]]
        nearest.append(min(others))
    return np.quantile(nearest, 0.1)


def test_the_usual_distance_by_plain_loops(problem, whole):
    rows = whole(problem.train)
    assert usual_distance(problem.train, problem.labels) == pytest.approx(plain_usual(rows, problem.labels))
    doubled = ArrayInputs(np.concatenate([rows, rows]))
    assert usual_distance(doubled, np.tile(problem.labels, 2)) == pytest.approx(plain_usual(rows, problem.labels))


def test_without_two_inputs_of_a_class_nothing_is_near(problem, pool):
    alone = Problem.from_arrays(np.eye(3, WIDE), np.arange(3), problem.classes.signatures[:4], [*pool, pool[0] * 1.001])
    assert usual_distance(alone.train, alone.labels) == 0
    assert twins_in(alone).tolist() == list(range(13))


def test_most_inputs_are_no_copies(problem):
    assert twins_in(problem).tolist() == list(range(12))
    assert (labelled_twins(problem) == -1).all()
    answers = Answers(np.zeros(12, dtype=np.int64))
    assert counted_once(problem, answers) == (problem, answers)
    assert as_twins(problem) is problem


def test_the_same_input_twice_and_nearly(problem, pool):
    rng = np.random.default_rng(2)
    shaken = pool[:4] + 0.1 * rng.normal(size=(4, WIDE))
    other = with_pool(problem, np.concatenate([pool, pool[5:8], shaken, 3 * pool[9:10]]))
    twins = twins_in(other)
    pairs = [(5, 12), (6, 13), (7, 14), (0, 15), (1, 16), (2, 17), (3, 18), (9, 19)]
    for one, copy in pairs:
        assert twins[one] == twins[copy] in (one, copy)
    assert len(set(twins)) == 12
    assert twins[twins].tolist() == twins.tolist(), "a twin is its own twin"


def test_copies_count_once_and_are_labelled_as_their_twin(problem, pool, whole):
    double = with_pool(problem, np.repeat(pool, 2, axis=0))
    names = tuple(f"{i}.jpg" for i in range(24))
    answers = Answers(np.repeat(np.arange(12), 2), names, {"bad.jpg": "why"}, double.pool)
    once, told = counted_once(double, answers)
    assert np.array_equal(whole(once.pool), pool)
    assert told.labels.tolist() == list(range(12))
    assert told.names == names[::2]
    assert told.unreadable == {"bad.jpg": "why"}
    assert np.array_equal(whole(told.pictures), pool)
    assert twins_in(once).tolist() == list(range(12))
    rng = np.random.default_rng(1)
    near = with_pool(problem, np.concatenate([pool, pool + 0.05 * rng.normal(size=pool.shape)]))
    seen = whole(as_twins(near).pool)
    assert np.array_equal(seen[:12], seen[12:])
    assert counted_once(near)[1] is None


def test_a_given_label_stays_with_its_input(problem, pool):
    a, b = np.flatnonzero(problem.classes.unseen)[:2]
    given_labels = np.full(36, UNKNOWN)
    given_labels[[12, 25, 13, 26]] = [a, b, a, a]  # copies of 0, 1, 1 and 2
    shaken = pool + 0.05 * np.random.default_rng(3).normal(size=pool.shape)
    other = with_pool(problem, np.concatenate([pool, pool, shaken]), given_labels)
    twins = twins_in(other)
    assert twins[[0, 12, 24]].tolist() == [12, 12, 12]
    assert twins[[13, 25]].tolist() == [13, 25], "two labels that differ"
    assert twins[2] == twins[14] == twins[26] == 26
    once, _ = counted_once(other)
    assert sorted(once.given[once.given != UNKNOWN]) == sorted([a, b, a, a])


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 3))
def test_how_often_and_in_which_order_makes_no_difference(seed, times):
    problem = made(seed=seed % 7)
    rows = problem.pool[np.arange(12)].numpy()
    rng = np.random.default_rng(seed)
    places = rng.permutation(np.tile(np.arange(12), times))
    other = with_pool(problem, rows[places])
    for kept in (counted_once(other)[0].pool, counted_once(problem)[0].pool):
        values = kept[np.arange(len(kept))].numpy()
        assert {row.tobytes() for row in values} == {row.tobytes() for row in rows}
        assert len(values) == 12


def test_near_pairs_by_plain_loops():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(30, WIDE)).astype(np.float32)
    rows[20:] = rows[:10] + np.linspace(0.05, 0.6, 10)[:, None] * rng.normal(size=(10, WIDE))
    inputs, radius = ArrayInputs(rows), 0.4
    unit = unit_rows(rows)
    expected = {(i, j) for i in range(30) for j in range(30) if np.linalg.norm(unit[i] - unit[j]) <= radius}
    assert set(map(tuple, near_pairs(inputs, inputs, radius).tolist())) == expected
    assert 30 < len(expected) < 60


def test_copies_of_labelled_inputs(problem, pool, whole):
    train = whole(problem.train)
    shaken = train[7] + 0.05 * np.random.default_rng(0).normal(size=WIDE)
    found = labelled_twins(with_pool(problem, [pool[0], train[3], pool[1], shaken]))
    assert found.tolist() == [-1, 3, -1, 7]
    assert 0 < NEAR < 1


def test_images_only_if_they_are_the_same(make_problem, whole):
    images = make_problem(shape=(1, 4, 4))
    rows = whole(images.pool)
    other = with_pool(images, np.concatenate([rows, rows[:2], rows[2:3] * 1.0001]))
    assert twins_in(other).tolist() == [*range(20), 0, 1, 22]
