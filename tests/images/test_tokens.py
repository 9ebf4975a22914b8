"""Transformers: class token and mean of patches, images of several sizes, and weights of a folder."""

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import save_file

from pren.images.extraction import Extractor, FrozenBackbone
from pren.images.photographs import recorded_backbone
from pren.images.side_by_side import SideBySide
from pren.images.tokens import fit_positions
from pren.images.torchvision_operators import import_timm
from pren.images.tried import TRIED, usual_size

VIT = "test_vit"  # 160 x 160 pixels, patches of 16, 64 features
CPU = torch.device("cpu")


def network(**options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return import_timm().create_model(VIT, num_classes=0, **options).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with weights of a transformer and of a convolutional network."""
    place = tmp_path_factory.mktemp("weights")
    save_file(network().state_dict(), place / f"{VIT}.safetensors")
    with torch.random.fork_rng(devices=[]):
        save_file(import_timm().create_model("test_resnet").state_dict(), place / "test_resnet.safetensors")
    return place


def levels(size):
    return torch.randint(0, 256, (2, 3, size, size), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def test_features_are_the_class_token_and_the_mean_of_the_others(folder):
    frozen = FrozenBackbone.load(Extractor(backbone=VIT, weights=str(folder), engine="torch"))
    assert (frozen.shape, frozen.facts["tokens"]) == ((128,), "class and mean")
    wanted, model = frozen.preprocessing, network()
    for image, features in zip(levels(160), frozen(levels(160), CPU), strict=True):
        pixels = torch.empty(1, 3, 160, 160)
        for channel in range(3):
            pixels[0, channel] = (image[channel] / 255 - wanted.mean[channel]) / wanted.std[channel]
        with torch.inference_mode():
            tokens = model.forward_features(pixels)[0]
        plain = [*tokens[0], *(sum(token[place] for token in tokens[1:]) / 100 for place in range(64))]
        assert np.allclose(features, np.array(plain), atol=1e-4)


def test_networks_without_a_class_token_are_as_they_were(folder):
    for name in ("test_resnet", "test_vit2"):
        weights = str(folder) if name == "test_resnet" else "random"
        frozen = FrozenBackbone.load(Extractor(backbone=name, weights=weights, engine="torch"))
        assert "tokens" not in frozen.facts


def test_a_model_of_before_has_the_class_token_only(folder):
    asked = Extractor(backbone=VIT, weights=str(folder), engine="torch", tokens="class")
    facts = FrozenBackbone.load(asked).facts
    assert "tokens" not in facts
    record = {"asked": asked.model_dump(mode="json", exclude={"tokens", "size", "engine"}), "facts": facts}
    assert recorded_backbone(record).shape == (64,)
    later = FrozenBackbone.load(asked.model_copy(update={"tokens": "class and mean"})).facts
    assert recorded_backbone({**record, "facts": later}).shape == (128,)


def test_a_size_of_ones_own(folder):
    asked = Extractor(backbone=VIT, weights=str(folder), engine="torch", size=96)
    frozen = FrozenBackbone.load(asked)
    assert frozen.preprocessing.sample_shape == (3, 96, 96)
    own = frozen(levels(96), CPU)
    assert own.shape == (2, 128)
    assert np.isfinite(own).all()
    usual = FrozenBackbone.load(asked.model_copy(update={"size": None}))
    assert usual.facts["weights"] != frozen.facts["weights"], "the positions are others"
    plain = FrozenBackbone.load(Extractor(backbone="test_resnet", weights=str(folder), engine="torch", size=96))
    assert plain(levels(96), CPU).shape == (2, *plain.shape)
    record = {"asked": asked.model_copy(update={"size": None}).model_dump(mode="json"), "facts": frozen.facts}
    assert recorded_backbone(record).facts == frozen.facts, "the record says which size"
    with refused("backbone-input small-cnn --size"):
        FrozenBackbone.load(Extractor(backbone="small-cnn", size=96))
    with refused("backbone-input 97"):
        FrozenBackbone.load(asked.model_copy(update={"size": 97}))  # no whole number of patches


def test_positions_are_resampled_and_nothing_else():
    small, large = network(img_size=96), network().state_dict()
    made = fit_positions(small, large)
    assert made["pos_embed"].shape == (1, 37, 64)
    assert made["pos_embed"][:, 0].equal(large["pos_embed"][:, 0]), "the class token has no place"
    flat = {**large, "pos_embed": torch.ones(1, 101, 64)}
    assert torch.allclose(fit_positions(small, flat)["pos_embed"], torch.ones(1, 37, 64))
    assert all(made[name] is value for name, value in large.items() if name != "pos_embed")
    assert fit_positions(network(), large) is large
    for odd in (torch.ones(1, 100, 64), torch.ones(1, 101, 63), torch.ones(101, 64)):
        other = {**large, "pos_embed": odd}
        assert fit_positions(small, other) is other, "of another network, which is refused later"


def test_a_folder_of_weights_serves_several_backbones(folder):
    both = SideBySide.load(Extractor(backbone=f"{VIT}+test_resnet", weights=str(folder), engine="torch"))
    alone = [
        FrozenBackbone.load(Extractor(backbone=name, weights=str(folder / f"{name}.safetensors"), engine="torch"))
        for name in (VIT, "test_resnet")
    ]
    assert [part.facts for part in both.parts] == [part.facts for part in alone]
    with refused("backbone-several"):
        SideBySide.load(Extractor(backbone=f"{VIT}+test_resnet", weights=str(folder / f"{VIT}.safetensors")))


def test_what_was_tried_is_known_to_timm():
    for name, tried in TRIED.items():
        config = import_timm().get_pretrained_cfg(name)
        assert config is not None
        assert usual_size(f"{name}.some_tag") == tried.size
        assert config.fixed_input_size or config.input_size[-1] == tried.size, "or old caches would not be found"
    assert usual_size("resnet34") is None
