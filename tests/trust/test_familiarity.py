"""Familiarity against loops, strangers in the pool and later, and where there is little to learn from."""

import logging
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from pren.data.folds import class_folds
from pren.methods.formulas import on_arrays
from pren.methods.pren_pool import PrENPool
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs, chunks
from pren.trust import familiarity
from pren.trust.familiarity import RIVALRY, SELDOM, Familiarity, moved, places_of, share_beyond

S, U, D = 12, 4, 24


def make(strangers=0, each=20, setting="zsl", order=None, seed=0):
    """Classes whose signatures tell where they lie, far from the origin; strangers lie elsewhere."""
    rng = np.random.default_rng(seed)
    signatures = rng.normal(size=(S + U, 6))
    centres = 6 + signatures @ rng.normal(size=(6, D)) / 2
    labels, pool = np.repeat(np.arange(S), each), np.repeat(np.arange(S, S + U), each)
    train, unlabelled = (centres[rows] + 0.5 * rng.normal(size=(len(rows), D)) for rows in (labels, pool))
    unlabelled = np.concatenate([unlabelled, elsewhere(rng, strangers)])
    if order is not None:
        signatures, labels = signatures[order], np.argsort(order)[labels]
    names = [f"c{row:02d}" for row in (np.arange(S + U) if order is None else order)]
    return Problem.from_arrays(train, labels, signatures, unlabelled, names, setting=setting)


def elsewhere(rng, count):
    """Strangers, all alike: they would make a class of their own."""
    return np.where(np.arange(D) % 2, 9.0, -9.0) + 0.1 * rng.normal(size=(count, D))


@pytest.fixture(scope="module")
def learned():
    """A problem and its familiarity."""
    problem = make()
    return problem, Familiarity.learn(problem)


def plain_distances(problem, fitted, x):
    """Both distances of one image, by loops."""
    train = problem.train[np.arange(len(problem.train))].double().numpy()
    cosines = []
    for row in np.flatnonzero(problem.classes.seen):
        mean = sum(image / np.sqrt(image @ image) for image in train[problem.labels == row])
        cosines.append(mean @ x / np.sqrt((mean @ mean) * (x @ x)))
    z, seen = on_arrays(fitted.preparation_, x[None])[0], problem.classes.seen
    near, rivals = ([sum((z - mean) ** 2) for mean in fitted.means_[part]] for part in (~seen, seen))
    return 1 - max(cosines), min(near) - RIVALRY * min(rivals)


def test_it_is_what_a_loop_computes(learned, monkeypatch):
    problem, _ = learned
    monkeypatch.setattr(familiarity, "STRANGE", -1.0)  # all of the pool is kept
    monkeypatch.setattr(familiarity, "chunks", partial(chunks, size=7))
    rows = lambda inputs: inputs[np.arange(len(inputs))].double().numpy()  # noqa: E731
    usual = []
    for fold, _ in class_folds(problem):
        fitted = PrENPool().fit(fold)
        usual += [plain_distances(fold, fitted, x) for x in rows(fold.pool)]
    fitted = PrENPool().fit(problem)
    found = [plain_distances(problem, fitted, x) for x in rows(problem.pool)]
    further = [max(0, np.median([pair[i] for pair in found]) - np.median([pair[i] for pair in usual])) for i in (0, 1)]
    usual = [(kind + further[0], place + further[1]) for kind, place in usual]

    def least(pair):
        kind, place = (sum(other[i] >= pair[i] - 1e-9 for other in usual) / len(usual) for i in (0, 1))
        return min(SELDOM * kind, place)

    all_least = [least(pair) for pair in usual]
    expected = [sum(other <= least(pair) + 1e-9 for other in all_least) / len(usual) for pair in found]
    assert np.allclose(Familiarity.learn(problem).of(problem.pool), expected)


def test_shares_count_what_is_as_far():
    assert on_arrays(share_beyond, np.array([1.0, 2, 2, 3]), np.array([0.0, 1, 2, 2.5, 3, 4])).tolist() == [
        1,
        1,
        0.75,
        0.25,
        0.25,
        0,
    ]


def test_usual_distances_grow_with_those_of_the_pool_but_never_shrink():
    usual = np.array([1.0, 2, 3])
    assert moved(usual, np.array([5.0, 4, 99])).tolist() == [4, 5, 6]
    assert moved(usual, np.array([0.0, 1, 1])).tolist() == [1, 2, 3]


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_own_images_are_familiar_as_often_as_it_says(setting):
    problem = make(each=60, setting=setting)
    found = Familiarity.learn(problem).of(problem.pool)
    assert ((found >= 0) & (found <= 1)).all()
    assert (found < 0.05).mean() < 0.12
    assert 0.3 < found.mean() < 0.8


@pytest.mark.parametrize("strangers", [0, 8, 20])
@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_strangers_are_found_in_the_pool_and_later(strangers, setting):
    problem = make(strangers, setting=setting)
    familiarity = Familiarity.learn(problem)
    found = familiarity.of(problem.pool)
    assert (found[80:] == 0).all()
    assert np.median(found[:80]) > 0.3
    assert (familiarity.of(elsewhere(np.random.default_rng(9), 5)) == 0).all()


def test_strangers_have_no_say_in_where_classes_lie(monkeypatch):
    problem, asked = make(strangers=20), []
    monkeypatch.setattr(familiarity, "places_of", lambda given: asked.append(given) or places_of(given))
    Familiarity.learn(problem)
    pool = asked[-1].pool[np.arange(len(asked[-1].pool))].numpy()
    assert 60 < len(pool) <= 80
    assert pool[:, 0].min() > 0, "a stranger has -9 there"


def test_a_pool_that_is_another_kind_as_a_whole_is_not_all_strange():
    problem = make()
    other = problem.pool[np.arange(80)].numpy() + 4 * (np.arange(D) % 2)
    found = Familiarity.learn(replace(problem, pool=ArrayInputs(other))).of(other)
    assert np.median(found) > 0.2


def test_images_of_seen_classes_are_strangers_in_zsl_only():
    problem = make()
    seen = problem.train[np.arange(240)]
    assert np.median(Familiarity.learn(problem).of(seen)) < 0.05
    assert np.median(Familiarity.learn(make(setting="gzsl")).of(seen)) > 0.3


def test_the_order_of_classes_and_of_the_pool_means_nothing(learned):
    problem, familiarity = learned
    rng = np.random.default_rng(1)
    turned, places = make(order=rng.permutation(S + U)), rng.permutation(80)
    turned = replace(turned, pool=problem.pool.select(places))
    assert np.allclose(Familiarity.learn(turned).of(turned.pool), familiarity.of(problem.pool)[places])


def test_it_comes_back_to_the_bit_and_what_does_not_fit_is_refused(learned):
    problem, familiarity = learned
    arrays = familiarity.arrays
    assert np.array_equal(Familiarity.restore(arrays, D).of(problem.pool), familiarity.of(problem.pool))
    assert all(array.dtype == np.float64 for array in arrays.values())
    wrong = {
        r"holds \['kind'\]": {"kind": arrays["kind"]},
        "place of the familiarity cannot be of shape": {**arrays, "place": arrays["place"][1:]},
        "rivals of the familiarity cannot be of shape": {**arrays, "rivals": arrays["rivals"][:, 1:]},
        "finite": {**arrays, "centre": np.full(D, np.nan)},
        "precision": {**arrays, "centre": arrays["centre"].astype(np.float32)},
        "no class": {**arrays, "candidates": arrays["candidates"][:0]},
        "not sorted": {**arrays, "least": arrays["least"][::-1]},
    }
    for message, changed in wrong.items():
        with pytest.raises(ValueError, match=message):
            Familiarity.restore(changed, D)
    with pytest.raises(ValueError, match="classes of the familiarity cannot be of shape"):
        Familiarity.restore(arrays, D + 1)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_features_that_are_all_the_same_are_familiar(value):
    problem = Problem.from_arrays(np.full((8, 5), value), np.arange(8) % 4, np.eye(6), np.full((4, 5), value))
    assert (Familiarity.learn(problem).of(problem.pool) == 1).all()


@pytest.mark.parametrize("each", [1, 2])
def test_few_images_are_enough(each):
    problem = make(each=each)
    found = Familiarity.learn(problem).of(problem.pool)
    assert ((found >= 0) & (found <= 1)).all()


def test_what_a_method_has_said_of_the_problem_is_not_said_again(monkeypatch, caplog):
    fit = PrENPool._fit

    def talkative(self, problem):
        logging.getLogger("pren.methods.talkative").warning("again")
        fit(self, problem)

    monkeypatch.setattr(PrENPool, "_fit", talkative)
    Familiarity.learn(make())
    assert caplog.text == ""


def test_none_is_learned_from_too_few_classes_or_too_many_features():
    rng = np.random.default_rng(0)
    few = Problem.from_arrays(rng.normal(size=(9, 4)), np.arange(9) % 3, np.eye(5), rng.normal(size=(3, 4)))
    assert Familiarity.learn(few) is None
    wide = Problem.from_arrays(np.ones((8, 8193)), np.arange(8) % 4, np.eye(6), np.ones((2, 8193)))
    assert Familiarity.learn(wide) is None


def test_labels_that_a_person_has_given_are_kept_with_their_images():
    problem = make(strangers=8)
    given = np.full(88, -1)
    given[:3] = S
    found = Familiarity.learn(replace(problem, given=given)).of(problem.pool)
    assert (found[80:] == 0).all()
