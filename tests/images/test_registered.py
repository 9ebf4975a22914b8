"""Backbones that somebody else registers."""

import numpy as np
import pytest
import torch
from refusals import refused
from torch import nn

import pren
from pren.images import backbones
from pren.images.backbones import create_backbone, find_backbone
from pren.images.extraction import Extractor, FrozenBackbone
from pren.images.preprocessing import Preprocessing
from pren.images.registered import BACKBONES, register_backbone
from pren.methods.pren import PrEN

SHAPE = (2, 6, 8)
WANTED = Preprocessing(sample_shape=(3, 10, 12), interpolation="bicubic")
TINY = {"heads": 3, "hidden": (8,), "rounds": 2, "initial_batches": 2, "batches": 2, "batch_size": 4}


class Toy(nn.Module):
    """The channels' means, mixed."""

    num_features = 5

    def __init__(self, channels):
        super().__init__()
        self.mix = nn.Linear(channels, self.num_features)

    def forward(self, images):
        return self.mix(images.mean(dim=(2, 3)))


def load(network):
    nn.init.ones_(network.mix.weight)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(BACKBONES, "_entries", {**BACKBONES._entries})
    register_backbone("toy", Toy, WANTED, "a toy")
    register_backbone("trained-toy", Toy, WANTED, "a trained toy", load)


def test_it_is_known_by_its_name():
    assert pren.register_backbone is register_backbone
    assert pren.list_backbones("*toy") == ["toy", "trained-toy"]
    assert find_backbone("toy").summary == "a toy"
    assert find_backbone("toy").preprocessing() == WANTED
    assert find_backbone("toy").preprocessing(geometry="timm").geometry == "timm"
    with refused("backbone-unknown"):
        find_backbone("toi")
    with refused("name-taken"):
        register_backbone("toy", Toy, WANTED, "another")


def test_nothing_is_imported_from_timm_for_it(monkeypatch):
    monkeypatch.setattr(backbones, "import_timm", None)
    network, width = create_backbone("toy", SHAPE, seed=0)
    assert width == 5
    assert network(torch.rand(4, *SHAPE)).shape == (4, 5)


def test_initial_weights_come_from_the_seed():
    def first(seed):
        return create_backbone("toy", SHAPE, seed)[0].mix.weight

    assert torch.equal(first(0), first(0))
    assert not torch.equal(first(0), first(1))


def test_pren_trains_it_and_finds_it_again(make_problem, tmp_path):
    problem = make_problem(shape=SHAPE)
    before, _ = create_backbone("toy", SHAPE, seed=0)
    model = PrEN(**TINY, backbone="toy").fit(problem)
    assert isinstance(model.network_.backbone, Toy)
    assert not torch.equal(model.network_.backbone.mix.weight, before.mix.weight)
    model.save(tmp_path)
    again = pren.load_model(tmp_path)
    assert again.backbone_ == "toy"
    assert np.array_equal(again.scores(problem.pool), model.scores(problem.pool))


def test_a_model_whose_backbone_nobody_registers_is_explained(make_problem, tmp_path):
    PrEN(**TINY, backbone="toy").fit(make_problem(shape=SHAPE)).save(tmp_path)
    del BACKBONES._entries["toy"]
    with refused("damaged"):
        pren.load_model(tmp_path)


def test_trained_weights_are_its_own():
    network, _ = create_backbone("trained-toy", SHAPE, seed=0)
    find_backbone("trained-toy").give_weights(network)
    assert torch.equal(network.mix.weight, torch.ones(5, 2))
    with refused("option-conflict"):
        find_backbone("trained-toy").give_weights(network, "x.pth")


def test_only_a_trained_one_can_be_frozen():
    frozen = FrozenBackbone.load(Extractor(backbone="trained-toy"))
    assert (frozen.shape, frozen.preprocessing) == ((5,), WANTED)
    levels = torch.full((2, 3, 10, 12), 255, dtype=torch.uint8)
    bias = frozen.network.mix.bias.numpy()
    assert np.allclose(frozen(levels, torch.device("cpu")), 3 + bias)
    with refused("weights-missing"):
        FrozenBackbone.load(Extractor(backbone="toy"))
