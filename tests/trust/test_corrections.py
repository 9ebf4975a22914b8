"""What labels of a person say about names that nobody has checked."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.methods.pren_pool import PrENPool
from pren.methods.pren_vote import PrENVote
from pren.problem import UNKNOWN
from pren.trust import assess
from pren.trust.corrections import Corrections, corrections_of, how_much_surer
from pren.trust.names import SPREAD, Names

checked = st.lists(st.tuples(st.floats(0.02, 0.98), st.booleans()), max_size=12)


@given(checked)
def test_the_likeliest_shift_by_a_fine_search(names):
    certainty, right = np.array([c for c, _ in names]), np.array([r for _, r in names], dtype=bool)
    found = how_much_surer(certainty, right)

    def likelihood(shift):
        total = -(shift**2) / (2 * SPREAD**2)
        for c, r in names:
            p = 1 / (1 + (1 - c) / c * np.exp(-shift))
            total += np.log(p if r else 1 - p)
        return total

    assert all(likelihood(found) >= likelihood(found + step) - 1e-9 for step in np.linspace(-3, 3, 121))


def test_surprises_move_it_and_what_was_expected_does_not():
    assert how_much_surer(np.array([]), np.array([], dtype=bool)) == 0
    assert how_much_surer(np.array([0.9, 0.9]), np.array([False, False])) < -0.5
    assert how_much_surer(np.array([0.3, 0.3]), np.array([True, True])) > 0.3
    assert abs(how_much_surer(np.array([0.99]), np.array([True]))) < 0.01


@pytest.fixture(scope="module")
def problem(make_problem):
    return make_problem(n_seen=9, n_unseen=4, pool_per_class=10)


@pytest.fixture(scope="module")
def fitted(problem):
    return PrENVote(heads=20).fit(problem)


@pytest.fixture(scope="module")
def guess(problem, fitted):
    unseen = np.flatnonzero(problem.classes.unseen)
    return unseen[fitted.scores(problem.pool)[:, unseen].argmax(axis=1)]


def told(problem, places, labels):
    given = np.full(len(problem.pool), UNKNOWN)
    given[places] = labels
    return replace(problem, given=given)


def test_it_counts_contradictions_and_names_what_changed(problem, fitted, guess):
    names, (one, other) = problem.classes.names, np.unique(guess)[:2]
    first, second, third = (np.flatnonzero(guess == row)[n] for row, n in ((one, 0), (other, 0), (other, 1)))
    found = corrections_of(fitted, told(problem, [first, second, third], [other, one, one]))
    assert (found.given, found.contradicted) == (3, 3)
    assert found.renamed == tuple(sorted([(names[one], names[other]), (names[other], names[one])]))
    assert found.surer < 0
    said = found.sentence()
    assert "3 of the 3 labels" in said
    assert f"{names[one]} is {names[other]}" in said
    right = corrections_of(fitted, told(problem, [first], [one]))
    assert (right.given, right.contradicted, right.renamed) == (1, 0, ())
    assert right.surer > 0


def test_forecast_and_confidence_take_it_up(problem, fitted, guess):
    one, other = np.unique(guess)[:2]
    wrong = told(problem, [np.flatnonzero(guess == one)[0]], [other])
    model = PrENVote(heads=20).fit(wrong)
    trust = assess(model, wrong, 2)
    found = trust.forecast.corrections
    assert isinstance(found, Corrections)
    assert found == corrections_of(model, wrong)
    labels = model.scores(wrong.pool)[:, wrong.classes.unseen].argmax(axis=1)
    labels = np.flatnonzero(wrong.classes.unseen)[labels]
    labels[wrong.decided()[0]] = wrong.decided()[1]
    names = Names.of(model, labels, wrong)
    assert np.array_equal(trust.names, names._replace(surer=found.surer).certainty())
    unchecked = (names.given == 0) & names.asked
    assert (trust.names[unchecked] < names.certainty()[unchecked]).all()


def test_nothing_is_said_where_nothing_is_given_or_nothing_named(problem, fitted, guess):
    assert corrections_of(fitted, problem) is None
    assert corrections_of(PrENPool().fit(problem), told(problem, [0], [guess[0]])) is None
