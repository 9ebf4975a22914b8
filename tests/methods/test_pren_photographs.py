"""PrEN on image files, with a tiny network of timm's as its backbone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refused, warnings_by

from pren.images.backbones import find_backbone
from pren.images.files import ImageFiles
from pren.images.preprocessing import plain
from pren.images.torchvision_operators import import_timm
from pren.methods.pren import PrEN
from pren.problem import ClassTable, Problem

pytestmark = pytest.mark.slow

TINY = {
    "heads": 3,
    "hidden": (8,),
    "rounds": 2,
    "initial_batches": 2,
    "batches": 2,
    "batch_size": 4,
    "backbone": "test_resnet",
    "weights": "random",
}


@pytest.fixture(autouse=True, scope="module")
def _small_images():
    """The tiny network at a fifth of its size: it takes any."""
    with pytest.MonkeyPatch.context() as patch:
        timm = import_timm()
        config = timm.get_pretrained_cfg
        patch.setattr(timm, "get_pretrained_cfg", lambda *a, **b: replace(config(*a, **b), input_size=(3, 32, 40)))
        yield


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """Pictures in four colours: two classes have labels."""
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    colours = np.array([[200, 30, 30], [30, 200, 30], [30, 30, 200], [200, 200, 30]])
    labels, in_pool = np.repeat([0, 1], 4), np.repeat([2, 3], 3)
    for place, label in enumerate([*labels, *in_pool]):
        noise = rng.integers(-30, 30, (20, 26, 3))
        Image.fromarray((colours[label] + noise).clip(0, 255).astype(np.uint8)).save(folder / f"{place:02d}.png")
    names = [f"{place:02d}.png" for place in range(14)]
    classes = ClassTable.build(("d", "a", "c", "b"), colours / 255, np.array([True, True, False, False]))
    return Problem(ImageFiles(folder, names[:8]), labels, ImageFiles(folder, names[8:]), classes)


def fit(problem, **params):
    return PrEN(**(TINY | params)).fit(problem)


def same_bits(model, other):
    ours, theirs = model.network_.state_dict(), other.network_.state_dict()
    assert ours.keys() == theirs.keys()
    return all(torch.equal(value, theirs[key]) for key, value in ours.items())


@pytest.fixture(scope="module")
def fitted(problem):
    return fit(problem)


def test_image_files_are_learned_as_the_backbone_wants_them(problem, fitted):
    wanted = find_backbone("test_resnet").preprocessing("random")
    assert fitted.preprocessing_ == wanted
    assert fitted.sample_shape_ == wanted.sample_shape == (3, 32, 40)
    assert fitted.backbone_ == "test_resnet"
    assert fitted.scores(problem.pool).shape == (6, 4)
    arrays = replace(
        problem,
        train=problem.train.prepared(wanted),
        pool=problem.pool.prepared(wanted),
    )
    assert same_bits(fitted, fit(arrays))


def test_image_files_are_scored_as_they_were_learned(problem, fitted):
    # Whatever they were brought to before: interpolation cannot be seen from the shape.
    pool = problem.pool.prepared(fitted.preprocessing_)
    expected = fitted.scores(np.asarray(pool[np.arange(6)]))
    other = fitted.preprocessing_.model_copy(update={"interpolation": "nearest"})
    for given in (problem.pool, pool, pool.prepared(other), pool.prepared(plain((1, 9, 9)))):
        assert np.allclose(fitted.scores(given), expected, atol=1e-6)
    with refused("inputs-shape"):
        fitted.scores(np.zeros((1, 3, 9, 9)))


def test_a_model_that_is_not_fitted_says_so(problem):
    with refused("not-fitted"):
        PrEN().scores(problem.pool)


@pytest.mark.parametrize("params", [{}, {"precision": "bfloat16", "geometry": "timm", "train_statistics": False}])
def test_a_saved_model_scores_the_same(problem, tmp_path, params, request):
    if params:
        request.getfixturevalue("bfloat16")
    model = fit(problem, **params)
    model.save(tmp_path)
    again = PrEN.load(tmp_path)
    assert again.preprocessing_ == model.preprocessing_
    assert same_bits(again, model)
    assert np.array_equal(again.scores(problem.pool), model.scores(problem.pool))


def test_a_model_whose_images_have_another_shape_is_damaged(fitted):
    tensors, facts = fitted._state()
    model = PrEN(**TINY)
    model.classes_, model.setting_, model.sample_shape_ = fitted.classes_, fitted.setting_, fitted.sample_shape_
    model._restore(tensors, copy.deepcopy(facts))
    facts["preprocessing"]["sample_shape"] = [3, 9, 9]
    with pytest.raises(ValueError, match="another shape"):
        model._restore(tensors, facts)


@pytest.mark.parametrize("stop", [0, 1])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"augmentation": "flip-crop", "pieces": 2},
        {"backbone": "test_efficientnet", "precision": "bfloat16", "backbone_lr": 1e-4},
    ],
    ids=["plain", "augmented", "depthwise"],
)
def test_resuming_gives_the_same_bits(problem, tmp_path, stop, params, request):
    if "precision" in params:
        request.getfixturevalue("bfloat16")
    whole = fit(problem, **params)
    model = PrEN(**(TINY | params))
    training = model.fit_rounds(problem)
    for _ in range(stop + 1):
        next(training)
    model.save(tmp_path)
    state = {key: value.clone() for key, value in model.training_state().items()}
    torch.rand(3)  # torch's own generator must not matter
    again = PrEN.load(tmp_path)
    assert not same_bits(again, whole)
    numbers = [done.number for done in again.fit_rounds(problem, state)]
    assert numbers == list(range(stop + 1, 3))
    assert same_bits(again, whole)
    assert any("running_mean" in key for key in whole.network_.state_dict())


def test_augmentation_changes_training(problem, fitted):
    models = [fit(problem, augmentation=kind) for kind in ("flip", "flip-crop", "flip")]
    assert not same_bits(models[0], fitted)
    assert not same_bits(models[0], models[1])
    assert same_bits(models[0], models[2])


def test_features_are_not_augmented(make_problem):
    with refused("augmentation-features"):
        PrEN(augmentation="flip").fit(make_problem())


def test_bfloat16_stays_near_float32(problem, fitted, bfloat16):
    rough = fit(problem, precision="bfloat16")
    assert not same_bits(rough, fitted)
    exact, scores = fitted.scores(problem.pool), rough.scores(problem.pool)
    assert np.abs(scores - exact).max() < 0.1
    assert all(value.dtype != torch.bfloat16 for value in rough.network_.state_dict().values())


def test_bfloat16_that_kills_is_refused_before_training(problem, monkeypatch):
    monkeypatch.setattr("pren.images.precision._works", lambda variable="": bool(variable))
    training = PrEN(**TINY, precision="bfloat16").fit_rounds(problem)
    with refused("precision-cpu"):
        next(training)


@pytest.mark.parametrize("learn", [True, False])
def test_statistics_are_left_alone_if_asked(problem, learn):
    before = fit(problem, initial_batches=0, rounds=0)
    after = fit(problem, train_statistics=learn)
    old, new = before.network_.state_dict(), after.network_.state_dict()
    same = [torch.equal(new[key], old[key]) for key in new if "running" in key]
    assert len(same) > 4
    assert all(same) != learn
    assert any(not torch.equal(new[key], old[key]) for key in new if key.endswith("bn1.weight"))


def test_the_backbone_of_photographs_is_resnet34(problem, monkeypatch):
    def offline(name):
        raise OSError("no network")

    monkeypatch.setattr("pren.images.weights.fetch", offline)
    with refused("weights-unreachable"):
        fit(problem, backbone=None, weights=None)
    with refused("weights-unreachable"):
        fit(replace(problem, backbone="test_vit"), backbone=None, weights=None)


@pytest.mark.parametrize("params", [{"geometry": "odd"}, {"backbone": 5}, {"weights": 5}, {"precision": "float8"}])
def test_wrong_parameters_are_explained_before_they_are_used(problem, params):
    with refused("param-value"):
        fit(problem, **params)


def test_a_preparation_that_has_no_effect_on_images_is_said_to_have_none(problem, fitted, caplog):
    assert same_bits(fit(problem), fitted)
    assert warnings_by("pren.methods.end_to_end", caplog) == []
    assert same_bits(fit(problem, features="whitened"), fitted)
    (message,) = warnings_by("pren.methods.end_to_end", caplog)
    assert "features=whitened" in message
    assert "--frozen" in message
