"""Classes that come or go after training."""

import numpy as np
import pytest
from refusals import refused

from pren.methods.classes import without_class
from pren.methods.registry import METHODS, create
from pren.methods.storage import load_model
from pren.problem import Problem

NEW = "between"  # neither the first nor the last by name
CANNOT = {"dcl", "gfzsl", "revise"}
# Their classes share votes or probabilities: where a new one gets some, the others have less.
SHARE = {name for name, entry in METHODS.items() if entry.method.name in ("pren", "qfsl", "uda")}


@pytest.fixture(scope="module")
def planted():
    """Features that are a linear map of the signatures; the last class can be left out."""
    rng = np.random.default_rng(0)
    signatures = rng.random((20, 6))
    signatures /= np.linalg.norm(signatures, axis=1, keepdims=True)
    centres = 3 * signatures @ rng.normal(size=(6, 12))
    labels, truth = np.repeat(np.arange(15), 8), rng.permutation(np.repeat(np.arange(15, 20), 12))
    train, pool = (
        (centres[which] + 0.1 * rng.normal(size=(len(which), 12))).astype(np.float32) for which in (labels, truth)
    )
    names = [*(f"class {row:02}" for row in range(19)), NEW]
    names[0], names[18] = "aaa", "zzz"

    def build(count, setting="zsl"):
        return Problem.from_arrays(
            train, labels, signatures[:count], pool[truth < count], names[:count], setting=setting
        )

    return build, signatures[19], pool, truth


@pytest.fixture(scope="module", params=[name for name, entry in METHODS.items() if not entry.method.one_space])
def model(request, planted, quick):
    return quick(request.param).fit(planted[0](19)), planted[1], planted[2], request.param


def test_scores_of_other_classes_stay_what_they_were(model):
    method, signature, pool, name = model
    before = method.scores(pool)
    if name in CANNOT:
        with refused("class-fixed"):
            method.with_class(NEW, signature)
        return
    grown = method.with_class(NEW, 5 * signature)
    assert grown.classes_.names == (*method.classes_.names, NEW)
    np.testing.assert_allclose(grown.classes_.signatures[-1], signature)
    after = grown.scores(pool)
    assert after.shape == (len(pool), 20)
    assert np.isfinite(after).all()
    np.testing.assert_array_equal(method.scores(pool), before)  # the old model is untouched
    if name not in SHARE:
        np.testing.assert_allclose(after[:, :19], before, rtol=1e-5, atol=1e-6)
    again = grown.without_class(NEW)
    np.testing.assert_allclose(again.scores(pool), before, rtol=1e-5, atol=1e-6)


def test_what_was_added_is_saved(model, tmp_path):
    method, signature, pool, name = model
    if name not in CANNOT:
        grown = method.with_class(NEW, signature)
        grown.save(tmp_path)
        loaded = load_model(tmp_path)
        np.testing.assert_array_equal(loaded.scores(pool), grown.scores(pool))
        twice = loaded.with_class("another", signature + 0.1)
        assert twice.scores(pool).shape[1] == 21


@pytest.mark.parametrize("name", ["pren-vote", "pren-pool", "ridge-s2v", "sae", "sync"])
def test_a_class_that_is_added_is_found(planted, name):
    build, signature, pool, truth = planted
    grown = create(name, features="raw").fit(build(19)).with_class(NEW, signature)
    found = grown.predict(pool)
    right = found == grown.classes_.named(truth)
    assert right[truth == 19].mean() > 0.9
    assert right[truth < 19].mean() > 0.9


def test_the_guess_of_pren_pool_is_that_of_a_gaussian_process(planted):
    from pren.methods.gaussian_process import guess_means

    build, signature, _, _ = planted
    method = create("pren-pool").fit(build(19, "gzsl"))
    grown = method.with_class(NEW, signature)
    guess = guess_means(method.classes_.signatures, method.means_, signature[None])
    np.testing.assert_allclose(grown.means_[-1], guess.means[0])
    given_back = 0.25 * method.means_.shape[1] * guess.covariance[0, 0] / (2 * method.variance_[0])
    assert grown.offsets_[-1] == pytest.approx(given_back)


class TestVotes:
    def test_half_of_the_heads_vote_on_it_by_informative_rows(self, planted, small):
        build, signature, _, _ = planted
        method = small(dim=5, heads=7).fit(build(19))
        heads = method.with_class(NEW, signature).network_.ensemble
        place = sorted((*method.classes_.names, NEW)).index(NEW)
        voting = heads.subsets[:, place].numpy()
        assert voting.sum() == 4
        for k in range(7):
            expected = method.projections_[k] @ signature
            if voting[k]:
                expected[~method.informative_[k]] = 0
            np.testing.assert_allclose(heads.embeddings[k, :, place], expected, rtol=1e-5, atol=1e-6)

    def test_projections_are_those_of_the_embeddings(self, planted, small):
        method = small(dim=5).fit(planted[0](19))
        order = np.argsort(method.classes_.names)
        E = method.projections_ @ method.classes_.signatures[order].T
        np.testing.assert_allclose(method.network_.ensemble.embeddings, E, atol=1e-6)

    def test_a_head_needs_a_class_to_vote_for(self, planted, small):
        method = small(heads=6).fit(planted[0](17))
        assert method.classes_.unseen.sum() == 2
        ensemble = method.network_.ensemble
        ensemble.subsets[0, sorted(method.classes_.names).index("class 16")] = False
        with refused("class-last"):
            method.without_class("class 15")


class TestRefusals:
    @pytest.fixture
    def method(self, planted):
        return create("eszsl").fit(planted[0](19))

    @pytest.mark.parametrize(
        ("name", "signature", "refusal"),
        [
            ("zzz", np.ones(6), "class-twice zzz"),
            (NEW, np.ones(5), "signature-size 6 5"),
            (NEW, np.full(6, np.nan), "not-finite between"),
            (NEW, np.zeros(6), "signature-zero between"),
            (" ", np.ones(6), "class-name"),
        ],
    )
    def test_a_class_that_cannot_be(self, method, name, signature, refusal):
        with refused(refusal):
            method.with_class(name, signature)

    def test_what_cannot_be_removed(self, method, planted):
        with refused("class-unknown"):
            method.without_class("nobody")
        with refused("class-seen"):
            method.without_class("aaa")
        one = create("eszsl").fit(planted[0](16))
        with refused("class-last"):
            one.without_class("class 15")

    @pytest.mark.parametrize("refinement", ["soft-kmeans", "label-propagation"])
    def test_a_refinement_has_no_place_for_a_class_but_can_forget_one(self, planted, refinement):
        build, signature, pool, _ = planted
        method = create("ridge-s2v", refinement=refinement).fit(build(19))
        with refused("class-refined"):
            method.with_class(NEW, signature)
        row = method.classes_.names.index("class 16")
        left = without_class(method, "class 16").predict(pool)
        kept = [name for name in method.classes_.names if name != "class 16"]
        scores = np.delete(method.scores(pool), row, axis=1)
        scores[:, :15] = -np.inf  # seen classes
        assert left.tolist() == [kept[place] for place in scores.argmax(axis=1)]


class TestContinuing:
    """A fit that starts from a model, with more classes."""

    def last(self, method, problem, **options):
        rounds = list(method.fit_rounds(problem, **options))
        return rounds[-1].measures["loss"]

    @pytest.mark.parametrize("name", ["pren", "pren-no-projection", "qfsl"])
    def test_without_training_it_is_the_model_with_the_class(self, planted, quick, name):
        build, signature, pool, _ = planted
        still = {"epochs": 0} if name == "qfsl" else {"rounds": 0, "initial_batches": 0}
        method = quick(name).fit(build(19))
        again = quick(name, **still)
        list(again.fit_rounds(build(20), start=method))
        np.testing.assert_allclose(again.scores(pool), method.with_class(NEW, signature).scores(pool), rtol=1e-5)
        list(again.fit_rounds(build(18), start=method))
        np.testing.assert_allclose(again.scores(pool), method.without_class("zzz").scores(pool), rtol=1e-5)

    def test_the_old_model_stays_as_it_is(self, planted, quick):
        build, _, pool, _ = planted
        method = quick("pren").fit(build(19))
        before = method.scores(pool)
        list(quick("pren").fit_rounds(build(19), start=method))
        np.testing.assert_array_equal(method.scores(pool), before)

    def test_what_it_cannot_start_from(self, planted, quick):
        build = planted[0]
        method = quick("pren").fit(build(19))
        with refused("start-other"):
            list(quick("pren", hidden=(9,)).fit_rounds(build(19), start=method))
        with refused("start-other"):
            list(quick("qfsl").fit_rounds(build(19), start=method))
        other = build(19)
        other.classes.signatures[3] += 1
        with refused("class-changed"):
            list(quick("pren").fit_rounds(other, start=method))
