"""Scoring in chunks: the same scores, in memory that does not grow with the pool."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from pren.core.voting import Network
from pren.problem.inputs import ArrayInputs
from pren.training import chunks
from pren.training.chunks import apply, images_for_backbone, images_for_heads

SUBSETS = [[0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]]
POOL = ArrayInputs(np.random.default_rng(0).normal(size=(23, 4)).astype(np.float32))
RULES = pytest.mark.parametrize("rule", ["votes", "literal", "probability"])


@pytest.fixture
def network(make_ensemble):
    return Network(nn.Identity(), make_ensemble(SUBSETS, hidden=(8,)))


@RULES
@pytest.mark.parametrize("size", [1, 7, 23, 1000])
def test_chunks_change_nothing(fabric, network, rule, size):
    network.rule = rule
    with torch.inference_mode():
        whole = network(POOL[np.arange(23)])
    scores = apply(fabric, network, POOL, size)
    assert scores.dtype == np.float64
    assert np.allclose(scores, whole, atol=1e-6)


def test_no_images_have_no_scores(fabric, network):
    assert apply(fabric, network, ArrayInputs(np.empty((0, 4), dtype=np.float32))).shape == (0, 5)


@pytest.mark.parametrize(
    ("images", "numbers", "size"),
    [(256, 8_000_000, 256), (256, 24 * 10, 10), (256, 24 * 10 - 1, 9), (4, 24 * 10, 4), (256, 1, 1)],
)
def test_how_many_images_the_heads_take_at_once(network, monkeypatch, images, numbers, size):
    monkeypatch.setattr(chunks, "CHUNK_IMAGES", images)
    monkeypatch.setattr(chunks, "CHUNK_NUMBERS", numbers)
    assert images_for_heads(network.ensemble) == size  # 3 heads, and 8 units are the widest layer


def test_classes_count_where_they_outnumber_the_units(make_ensemble, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_NUMBERS", 1000)
    assert images_for_heads(make_ensemble(np.arange(50)[None] > 1, hidden=(8,))) == 20


@pytest.mark.parametrize(
    ("shape", "device", "most"),
    [((4,), "cpu", 256), ((3, 224, 224), "cpu", 8), ((3, 224, 224), "cuda", 66), ((3, 5000, 5000), "cuda", 1)],
)
def test_how_many_images_a_backbone_takes_at_once(shape, device, most):
    class Large:
        sample_shape = shape

    class Somewhere:
        pass

    Somewhere.device = torch.device(device)
    assert images_for_backbone(Large(), Somewhere()) == most


@pytest.mark.parametrize(("most", "taken"), [(100, [2, 2, 1]), (1, [1] * 5)])
def test_a_chunk_is_what_both_can_take(fabric, monkeypatch, most, taken):
    monkeypatch.setattr(chunks, "CHUNK_PIXELS_ON_CPU", 2 * 12)
    sizes = []

    class Count(nn.Module):
        def forward(self, images):
            sizes.append(len(images))
            return images.flatten(1)

    images = np.random.default_rng(0).normal(size=(5, 3, 2, 2)).astype(np.float32)
    assert np.array_equal(apply(fabric, Count(), ArrayInputs(images), most), images.reshape(5, 12))
    assert sizes == taken


class LargestTensor(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.numbers = max(self.numbers, result.numel())
        return result


@RULES
def test_memory_does_not_grow_with_the_pool(fabric, network, monkeypatch, rule):
    monkeypatch.setattr(chunks, "CHUNK_NUMBERS", 24 * 10)
    network.rule = rule
    for images in (20, 200):
        pool = ArrayInputs(np.zeros((images, 4), dtype=np.float32))
        with LargestTensor() as largest:
            apply(fabric, network, pool, images_for_heads(network.ensemble))
        assert largest.numbers == 24 * 10


def test_networks_are_applied_in_evaluation_mode_and_without_gradients(fabric, make_ensemble):
    network = Network(nn.Dropout(0.5), make_ensemble(SUBSETS)).train()
    first, second = apply(fabric, network, POOL), apply(fabric, network, POOL)
    assert np.array_equal(first, second)
    assert all(weight.grad is None for weight in network.parameters())
