"""Networks cut before a stage: front and tail are the network, and nothing is believed that was not tried."""

import shutil
from typing import NamedTuple

import numpy as np
import pytest
import torch
from refusals import refused
from torch import nn

from pren.images.backbones import create_backbone, find_backbone
from pren.images.cache import FeatureCache
from pren.images.extraction import Extractor, FrozenBackbone
from pren.images.finetune.stages import Front, find_stage, list_stages, tail_of
from pren.images.finetune.tails import front_of, stages_of
from pren.images.torchvision_operators import import_timm

pytestmark = pytest.mark.slow

FAMILIES = {"test_resnet": 4, "test_efficientnet": 5, "test_vit": 6, "test_convnext": 4}
SHAPE = (3, 160, 160)


@pytest.fixture
def model():
    def build(name):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            return import_timm().create_model(name, num_classes=0).eval()

    return build


@pytest.fixture
def images():
    return torch.rand(2, *SHAPE, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", FAMILIES)
@torch.inference_mode()
def test_front_and_tail_are_the_network(model, images, name):
    network = model(name)
    stages = list_stages(network, images)
    assert len(stages) == FAMILIES[name]
    for stage in stages:
        kept = Front(network, stage.name)(images)
        assert kept.shape[1:] == stage.shape
        assert stage.bytes_per_image == 2 * kept[0].numel()
        tail = tail_of(network, stage.name, images)
        assert torch.allclose(tail(kept), network(images), atol=1e-5)
    weights = [sum(w.numel() for w in tail_of(network, stage.name, images).parameters()) for stage in stages]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] < weights[0]


def test_by_name_or_from_the_end(model, images):
    network = model("test_resnet")
    assert find_stage(network, "layer3", images).name == "layer3"
    assert [find_stage(network, number, images).name for number in ("1", "4", 2)] == ["layer4", "layer1", "layer3"]
    for wrong, refusal in (("0", "stage-unknown 1 4"), ("5", "stage-unknown 1 4"), ("layr4", "stage-unknown")):
        with refused(refusal):
            find_stage(network, wrong, images)


class Skipping(nn.Module):
    """A network whose second stage also reads what went into the first."""

    def __init__(self):
        super().__init__()
        self.layer1, self.layer2 = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return self.layer2(self.layer1(x)) + 2 * x


def test_a_network_that_skips_a_stage_is_not_cut_there(images):
    network = Skipping().eval()
    assert [stage.name for stage in list_stages(network, images)] == ["layer1"]
    with refused("stage-uncuttable"):
        tail_of(network, "layer2", images)


def test_a_network_without_stages(images):
    with refused("stages-unknown"):
        find_stage(nn.Sequential(nn.Flatten(), nn.LazyLinear(2)).eval(), "1", images)


def test_hooks_are_gone_afterwards(model, images):
    network = model("test_resnet")
    tail_of(network, "layer4", images)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


@torch.inference_mode()
def test_a_tail_is_a_backbone_with_the_weights_of_the_whole(tiny_weights):
    name, file = "test_resnet@layer4", str(tiny_weights)
    whole = FrozenBackbone.load(Extractor(backbone="test_resnet", weights=file))
    front = FrozenBackbone.load(Extractor(backbone="test_resnet", weights=file, until="1"))
    assert front.facts == {**whole.facts, "until": "layer4"}
    tail, width = create_backbone(name, front.shape, seed=3)
    find_backbone(name).give_weights(tail, file)
    levels = torch.randint(0, 256, (3, *front.preprocessing.sample_shape), generator=torch.Generator().manual_seed(0))
    device = torch.device("cpu")
    kept, features = front(levels, device), whole(levels, device)
    assert kept.shape == (3, *front.shape)
    assert features.shape == (3, width)
    assert torch.allclose(tail.eval()(torch.from_numpy(kept)), torch.from_numpy(features), atol=1e-5)


def test_stages_are_listed_without_weights():
    assert [stage.name for stage in stages_of("test_resnet")] == ["layer1", "layer2", "layer3", "layer4"]


def test_only_networks_of_timms_are_cut():
    with refused("backbone-unknown"):
        find_backbone("nonsense@layer4")
    with refused("stage-uncuttable"):
        find_backbone("test_resnet@layer9").create(3, "float32", False)


def test_random_weights_of_a_tail_are_those_of_the_seed():
    """And not what torch's own generator gives, wherever that stands."""
    tails = []
    for state in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(state)
            tail, _ = create_backbone("test_resnet@layer4", (192, 10, 10), seed=3)
            find_backbone("test_resnet@layer4").give_weights(tail, "random")
        tails.append(tail.state_dict())
    assert all(torch.equal(value, tails[1][name]) for name, value in tails[0].items())


def test_a_registered_network_is_not_cut():
    small = nn.Sequential(nn.Flatten(), nn.LazyLinear(2))
    with refused("stages-unknown"):
        front_of("mine", small, "1", SHAPE)


def test_what_the_disk_has_no_room_for_is_told_before(tmp_path, monkeypatch):
    class Usage(NamedTuple):
        free: int

    cache = FeatureCache(tmp_path, {}, (192, 7, 7))
    cache.append([b"x" * 32], np.zeros((1, 192, 7, 7), dtype=np.float32))
    assert cache.inputs(np.array([0]))[np.array([0])].shape == (1, 192, 7, 7)
    record = 36 + 2 * 192 * 49
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(9 * record))
    cache.check_room(10)  # one is there already
    with refused("disk-full"):
        cache.check_room(11)
