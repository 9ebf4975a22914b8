"""PrEN-Pool as a whole: problems whose answers are known, and problems with hardly anything in them."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import warnings_by

from pren.methods.class_statistics import class_statistics
from pren.methods.pren_pool import PrENPool
from pren.methods.rivals.ridge import RidgeS2V
from pren.methods.storage import load_model
from pren.problem import UNKNOWN, Problem
from pren.problem.inputs import ArrayInputs

LOGGER = "pren.methods.pren_pool"  # which warns of a pool unlike the labelled inputs, and of nothing else
CAMERA = np.array([1.0, -1.0] * 10)  # what another camera adds to every feature
THINNED = (20, 20, 20, 2, 2, 2)
SEEDS = pytest.mark.parametrize("seed", range(3))
SETTINGS = pytest.mark.parametrize("setting", ["zsl", "gzsl"])


def planted(seed=0, setting="zsl", told=1.5, sizes=(20,) * 6, shift=0.0):
    """A problem and its answers; signatures tell `told` of a class mean, and 1 of it nobody can know.

    Whatever the sizes of the unseen classes are, the images that are left are the same.
    """
    rng, S, U, m, d = np.random.default_rng(seed), 30, 6, 8, 20
    signatures = rng.normal(size=(S + U, m))
    centres = 8 + told * signatures @ rng.normal(size=(m, d)) / m**0.5 + rng.normal(size=(S + U, d))
    labels, answers = np.repeat(np.arange(S), 12), np.repeat(np.arange(S, S + U), 20)
    if setting == "gzsl":
        answers = np.concatenate([answers, np.repeat(np.arange(S), 5)])
    train, pool = (centres[which] + 0.7 * rng.normal(size=(len(which), d)) for which in (labels, answers))
    kept = [i for i, label in enumerate(answers) if label < S or i % 20 < sizes[label - S]]
    order = rng.permutation(kept)
    problem = Problem.from_arrays(train, labels, signatures, pool[order] + shift, setting=setting, normalise=False)
    return problem, answers[order]


def right(problem, answers, **params):
    return PrENPool(**params).fit(problem).predict(problem.pool) == problem.classes.named(answers)


@SEEDS
@SETTINGS
def test_it_finds_classes_that_ridge_regression_does_not(seed, setting, caplog):
    problem, answers = planted(seed, setting, told=1.0)
    ridge = RidgeS2V(features="whitened").fit(problem).predict(problem.pool) == problem.classes.named(answers)
    with caplog.at_level(logging.WARNING):
        ours = right(problem, answers)
    assert ours.mean() > 0.98
    assert ridge.mean() < 0.9
    assert warnings_by(LOGGER, caplog) == []


@SEEDS
def test_classes_of_a_tenth_of_the_size_are_found_as_well(seed):
    """No class is held to any size. Signatures must tell the most, or a small class may take a large one's images."""
    equal, thinned = planted(seed, told=2.0), planted(seed, told=2.0, sizes=THINNED)
    small = np.isin(thinned[1], [33, 34, 35])
    assert small.sum() == 6
    pool = equal[0].pool[np.arange(120)].numpy()
    among = [int(np.flatnonzero((pool == row).all(axis=1))[0]) for row in thinned[0].pool[np.arange(66)].numpy()]
    before, after = right(*equal)[among], right(*thinned)
    assert after.mean() >= before.mean() - 0.01
    assert after[small].all()


@SEEDS
def test_balance_costs_where_sizes_differ(seed):
    """Which is why it is off unless asked for."""
    thinned = planted(seed, told=2.0, sizes=THINNED)
    assert right(*thinned, balance=1.0).mean() < right(*thinned).mean() - 0.05


@SEEDS
def test_a_label_each_tells_two_classes_with_the_same_signature_apart(seed):
    """All other images of the two are found, and take each other's class if the two labels do: nothing else tells."""
    problem, answers = planted(seed)
    table = problem.classes
    table.signatures[31] = table.signatures[30]
    given = np.full(len(answers), UNKNOWN)
    for label in (30, 31):
        given[np.flatnonzero(answers == label)[0]] = label
    pair = np.isin(answers, [30, 31]) & (given == UNKNOWN)
    assert right(replace(problem, given=given), answers)[pair].mean() > 0.95
    exchanged = np.select([given == 30, given == 31], [31, 30], UNKNOWN)
    assert right(replace(problem, given=exchanged), answers)[pair].mean() < 0.05


@SEEDS
@SETTINGS
def test_a_pool_from_another_camera_is_labelled_rightly_with_a_warning(seed, setting, caplog):
    problem, answers = planted(seed, setting, shift=2 * CAMERA)
    with caplog.at_level(logging.WARNING):
        ours = right(problem, answers)
    assert ours.mean() > 0.98
    assert len(warnings_by(LOGGER, caplog)) == 1
    ridge = RidgeS2V(features="whitened").fit(problem).predict(problem.pool) == problem.classes.named(answers)
    assert ridge.mean() < 0.95


@SEEDS
def test_labelled_images_hold_the_means_of_seen_classes(seed):
    problem, _ = planted(seed, "gzsl")
    model = PrENPool(evidence=1e-9).fit(problem)
    means, _ = class_statistics(model._features(problem.train), problem.labels, 36)
    assert np.allclose(model.means_[:30], means[:30], atol=1e-6)
    believed = PrENPool(evidence=1.0).fit(problem)
    assert not np.allclose(believed.means_[:30], means[:30], atol=1e-2)


@SETTINGS
def test_the_model_is_the_same_bits_after_saving(setting, tmp_path):
    problem, _ = planted(0, setting)
    model = PrENPool(balance=0.5).fit(problem)
    model.save(tmp_path)
    again = load_model(tmp_path)
    assert np.array_equal(again.scores(problem.pool), model.scores(problem.pool))
    assert again.variance_.shape == (1,)


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan])
def test_a_variance_that_cannot_be_is_refused(variance):
    problem, _ = planted()
    model = PrENPool().fit(problem)
    tensors, facts = model._state()
    tensors["variance"][0] = variance
    with pytest.raises(ValueError, match="variance must be positive"):
        model._restore(tensors, facts)


@SETTINGS
def test_no_order_means_anything(setting):
    problem, _ = planted(0, setting)
    rng, table = np.random.default_rng(1), problem.classes
    classes, images = rng.permutation(36), rng.permutation(len(problem.pool))
    shuffled = Problem.from_arrays(
        problem.train[np.arange(360)].numpy(),
        np.argsort(classes)[problem.labels],
        table.signatures[classes],
        problem.pool[images].numpy(),
        setting=setting,
        normalise=False,
    )
    for balance in (0.0, 0.5):
        one, two = (PrENPool(balance=balance).fit(p).scores(problem.pool) for p in (problem, shuffled))
        assert np.allclose(one[:, classes], two, rtol=1e-6, atol=1e-6)


def test_two_unseen_classes_of_equal_signatures_share_the_images_of_both():
    problem, answers = planted()
    signatures = problem.classes.signatures.copy()
    signatures[31] = signatures[30]
    train, pool = problem.train[np.arange(360)].numpy(), problem.pool[np.arange(120)].numpy()
    twins = Problem.from_arrays(train, problem.labels, signatures, pool, normalise=False)
    model = PrENPool().fit(twins)
    assert np.isfinite(model.scores(pool)).all()
    predicted, names = model.predict(pool), twins.classes.named(answers)
    others = answers > 31
    assert (predicted[others] == names[others]).mean() > 0.9
    assert np.isin(predicted[answers == 30], twins.classes.names[30:32]).mean() > 0.9


def test_one_image_per_seen_class_is_enough_to_beat_chance():
    problem, answers = planted()
    first = np.unique(problem.labels, return_index=True)[1]
    few = Problem(ArrayInputs(problem.train[first].numpy()), problem.labels[first], problem.pool, problem.classes)
    assert right(few, answers).mean() > 0.5


SMALL = {
    "one unseen class": {"unseen": 1},
    "one seen class": {"seen": 1},
    "a pool of one image": {"N": 1},
    "one image per class": {"each": 1},
    "one feature": {"d": 1},
    "features that are all the same": {"feature": "same"},
    "equal signatures": {"signature": "same"},
    "everything at once": {"unseen": 1, "seen": 1, "N": 1, "each": 1, "d": 1, "feature": "same", "signature": "same"},
}


def small(
    seen=3, unseen=3, N=8, each=3, d=4, m=3, feature="normal", signature="normal", setting="zsl", unit=1.0, seed=0
):
    """Hardly anything to learn from, of features of any kind."""
    rng = np.random.default_rng(seed)

    def draw(kind, *shape):
        values = {"normal": rng.normal(size=shape), "whole": rng.integers(-1, 2, shape), "same": np.full(shape, 0.1)}
        return values[kind].astype(float)

    signatures = draw(signature, seen + unseen, m)
    signatures[~signatures.any(axis=1)] = 1
    labels = np.tile(np.arange(seen), each)
    train, pool = (unit * draw(feature, count, d) for count in (len(labels), N))
    return Problem.from_arrays(train, labels, signatures, pool, setting=setting)


def sound(problem, **params):
    """Finite scores, the same of one image as of many."""
    model = PrENPool(**params).fit(problem)
    scores = model.scores(problem.pool)
    assert np.isfinite(scores).all()
    alone = np.concatenate([model.scores(problem.pool[np.array([i])]) for i in range(len(problem.pool))])
    assert np.allclose(alone, scores, rtol=1e-6, atol=1e-8 * np.abs(scores).max())


@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL.keys())
@SETTINGS
@pytest.mark.parametrize("features", ["raw", "whitened"])
def test_hardly_anything_to_learn_from_is_survived(case, setting, features):
    for balance in (0.0, 0.5):
        sound(small(**case, setting=setting), features=features, balance=balance)


@settings(max_examples=100)
@pytest.mark.slow
@given(
    problem=st.builds(
        small,
        seen=st.integers(1, 4),
        unseen=st.integers(1, 4),
        N=st.integers(1, 12),
        each=st.integers(1, 3),
        d=st.integers(1, 5),
        m=st.integers(1, 4),
        feature=st.sampled_from(["normal", "whole", "same"]),
        signature=st.sampled_from(["normal", "whole", "same"]),
        setting=st.sampled_from(["zsl", "gzsl"]),
        unit=st.sampled_from([1e-3, 1.0, 1e3]),
        seed=st.integers(0, 99),
    ),
    features=st.sampled_from(["raw", "l2", "whitened"]),
    balance=st.sampled_from([0.0, 0.5, 1.0]),
    evidence=st.sampled_from([1e-9, 0.2, 1.0]),
    caution=st.sampled_from([0.0, 0.5, 1.0, 50.0]),
)
def test_scores_are_numbers_and_an_image_alone_gets_the_same(problem, features, balance, evidence, caution):
    sound(problem, features=features, balance=balance, evidence=evidence, caution=caution)
