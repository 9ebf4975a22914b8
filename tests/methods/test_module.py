"""Every method as one module that can be exported: a copy that gives the scores, or why there is none."""

import numpy as np
import pytest
import torch
from refusals import refused

from pren.methods.base import Method
from pren.methods.formulas import on_arrays
from pren.methods.module import Computed
from pren.methods.preparation import PREPARATIONS
from pren.methods.refinement import REFINEMENTS
from pren.methods.registry import METHODS

NOT_EXPORTED = ("uda",)
EXPORTED = [name for name in METHODS if name not in NOT_EXPORTED]
SETTINGS = pytest.mark.parametrize("setting", ["zsl", "gzsl"])


def by_module(model, inputs):
    with torch.inference_mode():
        return model.module()(torch.from_numpy(inputs)).numpy()


def assert_same(model, pool):
    """All at once as a few at a time, to single precision: networks compute in it, and all else is double."""
    assert np.allclose(by_module(model, pool), model.scores(pool), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@SETTINGS
@pytest.mark.parametrize("shape", [(5,), (1, 8, 12)], ids=["features", "images"])
@pytest.mark.parametrize("name", EXPORTED)
def test_the_module_gives_the_scores(name, quick, make_problem_of, whole, setting, shape):
    problem = make_problem_of(name, setting=setting, shape=shape)
    assert_same(quick(name, gamma=0.25).fit(problem), whole(problem.pool))


@pytest.mark.parametrize("name", NOT_EXPORTED)
def test_a_method_that_cannot_says_why(name, quick, make_problem_of):
    with refused("export-unsupported"):
        quick(name).fit(make_problem_of(name)).module()


@SETTINGS
@pytest.mark.parametrize("refinement", [name for name in REFINEMENTS if name != "none"])
@pytest.mark.parametrize("name", ["eszsl", "pren", "pren-vote", "clip"])
def test_scores_are_refined_by_the_module(name, refinement, quick, make_problem_of, whole, setting):
    problem = make_problem_of(name, setting=setting, pool_per_class=20)
    model = quick(name, refinement=refinement, balance=0.5, gamma=0.25, features="raw").fit(problem)
    assert_same(model, whole(problem.pool))


def test_images_of_a_backbone_are_refined(quick, make_problem, whole):
    problem = make_problem(shape=(1, 8, 12))
    assert_same(quick("pren", refinement="soft-kmeans").fit(problem), whole(problem.pool))


@pytest.mark.parametrize("features", PREPARATIONS)
@pytest.mark.parametrize("name", ["eszsl", "qfsl"])
def test_features_are_prepared_by_the_module(name, features, quick, make_problem, whole):
    problem = make_problem()
    pool = np.concatenate([whole(problem.pool), np.zeros((1, 5), dtype=np.float32)])
    assert_same(quick(name, features=features).fit(problem), pool)


@pytest.mark.parametrize(("name", "option"), [("ridge-s2v", {"distance": "euclid"}), ("sae", {"direction": "f2s"})])
def test_what_a_parameter_changes_is_in_the_module(name, option, quick, make_problem, whole):
    problem = make_problem()
    assert_same(quick(name, **option).fit(problem), whole(problem.pool))


def test_few_images_make_fewer_anchors_than_links(quick, make_problem, whole):
    problem = make_problem(n_unseen=2, pool_per_class=3)
    model = quick("eszsl", refinement="label-propagation").fit(problem)
    assert len(model.refinement_.arrays["anchors"]) < 3
    assert_same(model, whole(problem.pool))


def test_a_gamma_that_was_chosen_stands_for_the_parameter(quick, make_problem, whole):
    problem = make_problem(setting="gzsl")
    for name in ("eszsl", "qfsl"):
        model = quick(name, gamma=0.25).fit(problem)
        model.chosen_gamma_ = 0.5
        assert_same(model, whole(problem.pool))


def test_the_module_is_a_copy(quick, make_problem, whole):
    problem = make_problem()
    model = quick("eszsl").fit(problem)
    module, expected = model.module(), model.scores(problem.pool)
    model.weights_ += 1
    assert np.allclose(module(torch.from_numpy(whole(problem.pool))).numpy(), expected)


def test_a_backbone_in_bfloat16_leaves_in_float32(quick, make_problem):
    problem = make_problem(shape=(3, 32, 32))
    model = quick("pren", backbone="test_resnet", weights="random").fit(problem)
    model.network_.backbone.precision = "bfloat16"
    assert model.module().features.precision == "float32"
    assert model.network_.backbone.precision == "bfloat16"


def test_clips_refinement_takes_prepared_features(quick, make_problem_of, whole):
    problem = make_problem_of("clip", pool_per_class=20)
    model = quick("clip", features="standard", refinement="soft-kmeans").fit(problem)
    assert_same(model, whole(problem.pool))
    expected = on_arrays(model.refinement_, model._scores(problem.pool), model.preparation_.of(problem.pool))
    assert np.allclose(model.scores(problem.pool), expected)


def test_there_is_no_module_before_fitting(quick):
    with refused("not-fitted"):
        quick("eszsl").module()


def test_a_method_that_numpy_computes_scores_but_has_no_module(make_problem):
    class Theirs(Method):
        name = "theirs"

        def _fit(self, problem):
            pass

        def _scorer(self):
            return Computed(lambda x: np.tile(x[:, :1], (1, 8)), "it is NumPy's")

    problem = make_problem()
    model = Theirs().fit(problem)
    assert np.array_equal(model.scores(problem.pool)[:, 3], model._features(problem.pool)[:, 0])
    with refused("export-unsupported"):
        model.module()
