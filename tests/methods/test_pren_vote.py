"""PrEN-Vote as a whole: problems in which the names are the question."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.methods import pren_vote
from pren.methods.pren_pool import PrENPool
from pren.methods.pren_vote import PrENVote, said_of
from pren.methods.storage import load_model
from pren.problem import UNKNOWN, Problem

S, U = 30, 6
SEEDS = pytest.mark.parametrize("seed", range(3))


def planted(seed=0, told=1.5, sizes=(20,) * U, setting="zsl", order=None):
    """A problem and its answers; signatures tell `told` of a class mean, and 1 of it nothing tells."""
    rng, m, d = np.random.default_rng(seed), 8, 20
    signatures = rng.normal(size=(S + U, m))
    centres = 8 + told * signatures @ rng.normal(size=(m, d)) / m**0.5 + rng.normal(size=(S + U, d))
    labels = np.repeat(np.arange(S), 12)
    answers = rng.permutation(np.repeat(np.arange(S, S + U), sizes))
    if setting == "gzsl":
        answers = np.concatenate([answers, np.repeat(np.arange(S), 5)])
    train, pool = (centres[which] + 0.3 * rng.normal(size=(len(which), d)) for which in (labels, answers))
    order = np.arange(S + U) if order is None else order
    place = np.argsort(order)
    problem = Problem.from_arrays(
        train,
        place[labels],
        signatures[order],
        pool,
        class_names=[f"class {row:02d}" for row in order],
        setting=setting,
        normalise=False,
    )
    return problem, place[answers]


def right(method, problem, answers):
    return float((method.fit(problem).predict(problem.pool) == problem.classes.named(answers)).mean())


def alike(seed):
    """Unseen classes that are described alike, in more ways than there are seen classes: guesses of all are off alike.

    Nothing is hidden: a mean is a linear function of the signature.
    """
    rng, seen, m, d = np.random.default_rng(seed), 10, 40, 20
    common, signatures = rng.normal(size=m), rng.normal(size=(seen + U, m))
    signatures[seen:] = 0.7 * common + 0.51**0.5 * signatures[seen:]
    centres = 8 + signatures @ rng.normal(size=(m, d)) / m**0.5
    labels, answers = np.repeat(np.arange(seen), 12), rng.permutation(np.repeat(np.arange(seen, seen + U), 20))
    train, pool = (centres[which] + 0.2 * rng.normal(size=(len(which), d)) for which in (labels, answers))
    return Problem.from_arrays(train, labels, signatures, pool, normalise=False), answers


def test_it_names_groups_that_pren_pool_confuses():
    """The groups are the same, so whatever is wrong is a name; in one problem of twelve four names are mended."""
    pool, vote = ([right(kind(), *alike(seed)) for seed in range(12)] for kind in (PrENPool, PrENVote))
    assert pool[2] < 0.4
    assert vote[2] > 0.99
    assert np.mean(vote) > np.mean(pool) + 0.03


def test_agreement_is_higher_where_signatures_tell_more():
    """It is no probability: heads that know nothing agree as well, less often. Rehearsals have to say what it means."""
    much, little = (
        np.array([PrENVote().fit(planted(seed, told=told)[0]).name_agreement()[S:] for seed in range(4)])
        for told in (3.0, 0.0)
    )
    assert much.min() > 0.9
    assert little.mean() < 0.8


@SEEDS
def test_an_absent_class_stays_empty(seed):
    """And the others keep their names: its group has no centre, so that no class gains by taking it."""
    problem, answers = planted(seed, told=3.0, sizes=(20, 20, 20, 20, 20, 0))
    found = PrENVote().fit(problem).predict(problem.pool)
    assert (found != problem.classes.names[S + 5]).all()
    assert (found == problem.classes.named(answers)).mean() > 0.95


def test_votes_are_shares_of_the_heads_on_unseen_classes():
    problem, _ = planted(told=0.5, setting="gzsl")
    model = PrENVote(heads=7).fit(problem)
    assert model.votes_.shape == (S + U, S + U)
    assert not model.votes_[:S].any()
    assert not model.votes_[:, :S].any()
    np.testing.assert_allclose(model.votes_.sum(axis=1)[S:], 1)
    np.testing.assert_allclose(7 * model.votes_, np.round(7 * model.votes_), atol=1e-9)


def test_the_runner_up_has_the_most_votes_of_the_others():
    model = PrENVote()
    model.votes_ = np.array([[0.0, 0, 0, 0], [0, 0.5, 0.2, 0.3], [0, 0, 1, 0], [0, 0.6, 0, 0.4]])
    assert model.name_agreement().tolist() == [0, 0.5, 1, 0.4]
    assert model.runner_up().tolist() == [0, 3, 2, 1]


@SEEDS
def test_one_label_settles_the_name_of_its_group(seed):
    """Signatures tell nothing; one label for each class, and all images follow."""
    problem, answers = planted(seed, told=0.0)
    given = np.full(len(answers), UNKNOWN)
    for label in range(S, S + U):
        given[np.flatnonzero(answers == label)[0]] = label
    told = Problem(problem.train, problem.labels, problem.pool, problem.classes, given=given)
    assert right(PrENVote(), problem, answers) < 0.7
    model = PrENVote()
    assert right(model, told, answers) > 0.95
    assert (model.name_agreement()[S:] > 0.9).all()


@SEEDS
def test_a_labelled_image_in_the_wrong_group_renames_nothing(seed):
    """Most labels of its class are elsewhere."""
    problem, answers = planted(seed, told=3.0)
    given = np.full(len(answers), UNKNOWN)
    given[np.flatnonzero(answers == S)[:2]] = S
    given[np.flatnonzero(answers == S + 1)[0]] = S  # it looks like the next class
    told = Problem(problem.train, problem.labels, problem.pool, problem.classes, given=given)
    assert right(PrENVote(), problem, answers) > 0.95
    assert right(PrENVote(), told, answers) > 0.95


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_the_order_of_the_classes_means_nothing(setting):
    order = np.random.default_rng(5).permutation(S + U)
    one, two = (planted(told=0.6, setting=setting, order=o)[0] for o in (None, order))
    first, second = (PrENVote().fit(problem) for problem in (one, two))
    np.testing.assert_allclose(second.scores(one.pool), first.scores(one.pool)[:, order], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(second.votes_, first.votes_[np.ix_(order, order)])


def test_the_same_seed_gives_the_same_bits_and_they_are_saved(tmp_path):
    problem, _ = planted(told=0.6)
    one, two, other = (PrENVote(seed=seed).fit(problem) for seed in (3, 3, 4))
    assert np.array_equal(one.votes_, two.votes_)
    assert np.array_equal(one.scores(problem.pool), two.scores(problem.pool))
    assert not np.array_equal(one.votes_, other.votes_)
    one.save(tmp_path)
    again = load_model(tmp_path)
    assert np.array_equal(again.votes_, one.votes_)
    assert np.array_equal(again.scores(problem.pool), one.scores(problem.pool))


def test_nothing_was_voted_on_a_class_that_is_added_later():
    problem, _ = planted()
    model = PrENVote().fit(problem)
    grown = model.with_class("new", problem.classes.signatures[-1] + 0.5)
    assert grown.name_agreement()[-1] == 0
    assert np.array_equal(grown.without_class("new").votes_, model.votes_)


def test_votes_follow_a_group_to_its_new_name(monkeypatch):
    """In a problem whose names change in the first round, with no second one to count again."""
    monkeypatch.setattr(pren_vote, "ROUNDS", 1)
    model = PrENVote().fit(alike(2)[0])
    assert model.name_agreement()[10:].min() > 0.7


@given(st.integers(1, 4), st.integers(0, 99))
def test_what_a_person_says_fixes_as_many_names_as_agree_one_to_one(u, seed):
    said = np.random.default_rng(seed).poisson(0.5, size=(u, u)).astype(float)
    fixed = said_of(said)
    known = np.flatnonzero(fixed != UNKNOWN)
    assert len(set(fixed[known].tolist())) == len(known)
    assert (said[fixed[known], known] > 0).all()
    most = max(sum(said[group, label] for label, group in enumerate(order)) for order in permutations(range(u)))
    assert said[fixed[known], known].sum() == most
