"""Refinement of scores: a class under a name, learned in `fit`, for every method and every image."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
import torch
from refusals import refused

from pren.core.pseudo import top_per_class
from pren.methods.refinement import REFINEMENTS, Refinement
from pren.methods.registry import METHODS
from pren.methods.selection import SELECTIONS
from pren.methods.storage import load_model
from pren.problem import UNKNOWN, Problem, candidates_of

OURS = [name for name in REFINEMENTS if name != "none"]
NETWORKS = [name for name, entry in METHODS.items() if hasattr(entry.method, "module")]
# How exactly a method scores an image alone as among many: networks compute in single precision, UDA iterates.
EXACT = {"uda": 1e-5, **dict.fromkeys(NETWORKS, 1e-4)}
SETTINGS = pytest.mark.parametrize("setting", ["zsl", "gzsl"])


class Nearest(Refinement):
    """Every image takes the mean of its own scores and those of the image of the pool that is nearest to it."""

    learns = {"features": ("N", "d"), "raw": ("N", "L")}  # noqa: RUF012
    told = []  # noqa: RUF012

    @classmethod
    def fit(cls, pool):
        cls.told.append(pool)
        return cls(pool.candidates, features=pool.features, raw=pool.scores)

    def forward(self, scores, features):
        distances = (features[:, None] - self.features).square().sum(dim=-1)
        return (scores + self.raw[distances.argmin(dim=1)]) / 2


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(REFINEMENTS, "_entries", {**REFINEMENTS._entries, "toy": Nearest})
    monkeypatch.setattr(Nearest, "told", [])
    return Nearest


@pytest.mark.parametrize("name", METHODS)
@SETTINGS
def test_a_refinement_works_for_every_method(name, setting, toy, quick, make_problem_of):
    problem = make_problem_of(name, setting=setting, n_seen=3, n_unseen=3)
    selection = {"rounds": 0} if "selection" in METHODS[name].method.params else {}  # which would see refined scores
    plain = quick(name, **selection).fit(problem)
    model = quick(name, refinement="toy", gamma=0.5, **selection).fit(problem)
    pool, new = plain.scores(problem.pool), plain.scores(problem.train)
    of_pool, of_new = plain._features(problem.pool), plain._features(problem.train)
    nearest = [min(range(len(pool)), key=lambda j: ((row - of_pool[j]) ** 2).sum()) for row in of_new]
    gamma = 0.5 * problem.classes.seen if setting == "gzsl" else 0.0
    assert np.allclose(model.scores(problem.pool), pool - gamma)
    assert np.allclose(model.scores(problem.train), (new + pool[nearest]) / 2 - gamma)


@pytest.mark.parametrize("shape", [(5,), (1, 8, 12)], ids=["features", "images"])
@pytest.mark.parametrize("name", ["eszsl", "pren", "qfsl"])
@SETTINGS
def test_what_a_refinement_is_told(name, setting, shape, toy, quick, make_problem):
    problem = make_problem(setting=setting, shape=shape)
    model = quick(name, refinement="toy", balance=0.25).fit(problem)
    pool = toy.told[-1]
    assert np.array_equal(pool.candidates, problem.classes.among(candidates_of(setting)))
    assert pool.balance == 0.25
    assert pool.classes is problem.classes
    assert np.array_equal(pool.features, model._features(problem.pool))
    assert np.array_equal(pool.scores, model._scores(problem.pool))  # after the last round
    if setting == "gzsl":
        assert np.array_equal(pool.labels, problem.labels)
        assert np.allclose(pool.labelled, model._features(problem.train), atol=1e-6)
    else:
        assert pool.labelled.shape == (0, pool.features.shape[1])
        assert pool.labels.shape == (0,)


@SETTINGS
def test_images_that_a_person_has_labelled_are_told_as_labelled_ones_and_only_once(setting, toy, quick, make_problem):
    plain = make_problem(setting=setting)
    row = int(np.flatnonzero(plain.classes.unseen)[0])
    given = np.full(len(plain.pool), UNKNOWN)
    given[[2, 5]] = row
    model = quick("eszsl", refinement="toy").fit(replace(plain, given=given))
    told, features = toy.told[-1], model._features(plain.pool)
    left = [place for place in range(len(given)) if place not in (2, 5)]
    assert np.array_equal(told.features, features[left])
    assert np.array_equal(told.scores, model._scores(plain.pool)[left])
    assert np.array_equal(told.labelled[-2:], features[[2, 5]])
    assert told.labels[-2:].tolist() == [row, row]
    assert len(told.labels) == 2 + (len(plain.labels) if setting == "gzsl" else 0)


def test_none_costs_nothing(quick, make_problem, monkeypatch):
    problem = make_problem(setting="gzsl")
    model = quick("sae").fit(problem)
    calls = []
    monkeypatch.setattr(model, "_run", lambda *given: calls.append(given))
    model._fit_refinement(problem)
    assert calls == []
    assert model.refinement_("scores", "features") == "scores"
    assert not [name for name in model._state()[0] if name.startswith("refinement.")]


@pytest.mark.parametrize(("setting", "refinement"), zip(cycle(["zsl", "gzsl"]), OURS, strict=False))
@pytest.mark.parametrize("name", METHODS)
def test_it_is_saved_and_scores_images_one_at_a_time(name, setting, refinement, quick, make_problem_of, tmp_path):
    problem = make_problem_of(name, setting=setting)
    model = quick(name, refinement=refinement, balance=0.5, gamma=0.1).fit(problem)
    scores = model.scores(problem.pool)
    assert not np.allclose(scores, quick(name, gamma=0.1).fit(problem).scores(problem.pool))
    model.save(tmp_path)
    assert np.array_equal(load_model(tmp_path).scores(problem.pool), scores)
    alone = [model.scores(problem.pool[np.array([place])])[0] for place in range(4)]
    exact = EXACT.get(name, 1e-9)
    assert np.allclose(alone, scores[:4], rtol=exact, atol=exact)


@pytest.mark.parametrize("refinement", OURS)
@pytest.mark.parametrize("name", [name for name in METHODS if name not in NETWORKS])
@SETTINGS
def test_the_order_of_pool_and_classes_means_nothing(name, setting, refinement, quick, make_problem_of):
    images, classes = np.random.default_rng(1).permutation(40 if setting == "gzsl" else 20), np.arange(8)[::-1]
    problem, turned = make_problem_of(name, setting=setting), make_problem_of(name, setting=setting, order=classes)
    moved = replace(problem, pool=problem.pool.select(images))
    one, two, three = (
        quick(name, refinement=refinement, balance=0.5).fit(given).scores(given.pool)
        for given in (problem, moved, turned)
    )
    assert np.allclose(two, one[images], rtol=1e-6, atol=1e-6)
    assert np.allclose(three, one[:, classes], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["pren", "qfsl"])
def test_a_backbones_features_are_refined(name, quick, make_problem, tmp_path):
    problem = make_problem(shape=(1, 8, 12), setting="gzsl")
    model = quick(name, refinement="soft-kmeans").fit(problem)
    assert model.refinement_.arrays["means"].shape == (8, model._features(problem.pool).shape[1])
    model.save(tmp_path)
    again = load_model(tmp_path)
    assert np.array_equal(again.scores(problem.train), model.scores(problem.train))


@pytest.mark.parametrize("name", ["pren", "qfsl"])
def test_the_model_of_every_round_is_whole_and_can_be_resumed(name, quick, make_problem, tmp_path):
    problem = make_problem(setting="gzsl")
    whole = quick(name, refinement="soft-kmeans", balance=0.5).fit(problem)
    model = quick(name, refinement="soft-kmeans", balance=0.5)
    rounds = model.fit_rounds(problem)
    next(rounds)
    assert np.isfinite(model.scores(problem.pool)).all()
    state = {key: value.clone() for key, value in model.training_state().items()}
    model.save(tmp_path)
    again = load_model(tmp_path)
    list(again.fit_rounds(problem, state))
    ours, theirs = whole._state()[0], again._state()[0]
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize("shape", [(5,), (1, 8, 12)], ids=["features", "images"])
@SETTINGS
def test_pren_chooses_images_by_refined_scores(setting, shape, small, make_problem, monkeypatch):
    """Those of the model that the round before left, without γ, in every round."""
    seen = []

    def spy(scores, candidates, per_class, last, progress):
        seen.append(scores)
        return top_per_class(scores, candidates, per_class, last)

    monkeypatch.setattr(SELECTIONS, "_entries", {**SELECTIONS._entries, "spy": spy})
    problem = make_problem(setting=setting, shape=shape)
    features = "standard" if len(shape) == 1 else "raw"
    model = small(refinement="soft-kmeans", balance=0.5, selection="spy", first_rounds=1, features=features, gamma=9.0)
    by_name = np.argsort(problem.classes.names)
    left = []
    for _ in model.fit_rounds(problem):
        model.set_params(gamma=0.0)
        left.append(model.scores(problem.pool)[:, by_name])
        model.set_params(gamma=9.0)
    assert len(seen) == 2
    for before, scores in zip(left[:-1], seen, strict=True):
        assert np.array_equal(scores, before)
    assert not hasattr(model, "_pool")


def test_no_rounds_at_all_leave_a_model(quick, make_problem):
    problem = make_problem()
    assert np.isfinite(quick("qfsl", epochs=0, refinement="soft-kmeans").fit(problem).scores(problem.pool)).all()


def test_an_unknown_one_is_refused(quick, make_problem):
    with refused("unknown-name"):
        quick("eszsl", refinement="nun")


@pytest.mark.parametrize("balance", [-0.1, 1.1])
def test_balance_is_a_share(quick, balance):
    with refused("param-value"):
        quick("eszsl", balance=balance)


@pytest.mark.parametrize("refinement", OURS)
@pytest.mark.parametrize("name", ["ridge-s2v", "sae", "gfzsl"])
def test_the_default_survives_unequal_classes(name, refinement, quick):
    """Pools in which some classes have a tenth of the images of others: never a point below no balancing."""
    for seed in range(3):
        problem, labels = thinned(seed)
        right = []
        for params in ({}, {"balance": 0.0}):
            predicted = quick(name, refinement=refinement, **params).fit(problem).predict(problem.pool)
            right.append(
                np.mean([(predicted[labels == c] == problem.classes.names[c]).mean() for c in np.unique(labels)])
            )
        assert right[0] >= right[1] - 0.01


def thinned(seed):
    """Features are a noisy linear map of the signatures; every other unseen class has a tenth of the images."""
    rng = np.random.default_rng(seed)
    signatures = rng.random((26, 8))
    centres = 6 * signatures @ rng.normal(size=(8, 12))
    train, pool = np.repeat(np.arange(20), 10), np.repeat(np.arange(20, 26), [60, 6, 60, 6, 60, 6])
    features, images = (centres[which] + rng.normal(size=(len(which), 12)) for which in (train, pool))
    names = [f"c{i:02d}" for i in range(26)]
    return Problem.from_arrays(features, train, signatures, images, names), pool
