"""Backbones by name."""

import numpy as np
import pytest
import torch

from pren.errors import PrenError
from pren.vision.backbones import create_backbone, list_backbones
from pren.vision.small_cnn import small_cnn

IMAGE = (1, 16, 32)


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
    network = small_cnn().eval()
    blank, left = torch.zeros(1, *IMAGE), torch.zeros(1, *IMAGE)
    left[..., 4:12, 3:8] = 1
    with torch.no_grad():
        change = (network(left) - network(blank)).abs().reshape(128, 2).sum(dim=0)
        mirrored = (network(left.flip(-1)) - network(blank)).abs().reshape(128, 2).sum(dim=0)
    assert change[0] > 1.5 * change[1]
    assert mirrored[1] > 1.5 * mirrored[0]


def test_features_do_not_depend_on_the_rest_of_the_batch():
    network = small_cnn().train()
    images = torch.rand(4, *IMAGE)
    assert torch.allclose(network(images)[:1], network(images[:1]), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("small-cmm", IMAGE, r"no backbone 'small-cmm'\. Did you mean small-cnn"),
        ("zzz", (7,), r"no backbone 'zzz'\. Known are small-cnn"),
        (None, IMAGE, "choose a backbone, one of small-cnn"),
        ("small-cnn", (7,), r"takes images, but the inputs are features \(7,\)"),
        ("small-cnn", (16, 32), r"must be features \(D,\) or images"),
        ("small-cnn", (1, 3, 32), "at least 4 x 4 pixels, not 3 x 32"),
    ],
)
def test_mistakes_are_explained(name, shape, message):
    with pytest.raises(PrenError, match=message):
        create_backbone(name, shape, seed=0)


def test_list_takes_patterns():
    assert list_backbones() == ["small-cnn"]
    assert list_backbones("small*") == ["small-cnn"]
    assert list_backbones("resnet*") == []
