"""open_clip's towers, with random weights of a file: nothing is fetched."""

import builtins
import logging
import sys

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file

from pren.data.describe import encode, find_encoder, list_encoders
from pren.images.backbones import find_backbone, list_backbones
from pren.images.clip import import_open_clip
from pren.images.extraction import Extractor, FrozenBackbone

pytestmark = pytest.mark.slow

TEXTS = ["a red fox", "a blue car, old and rusty"]
TAG = "clip:ViT-B-32/laion2b_s34b_b79k"


@pytest.fixture
def encoder(tiny_clip):
    return find_encoder(f"clip:tiny@{tiny_clip[1]}")


def backbone(path):
    return FrozenBackbone.load(Extractor(backbone="clip:tiny", weights=str(path)))


class TestTextTower:
    def test_its_vectors_are_open_clips_of_unit_length(self, tiny_clip, encoder):
        tokens = import_open_clip().get_tokenizer("tiny")(TEXTS)
        with torch.no_grad():
            expected = tiny_clip[0].encode_text(tokens).numpy()
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(encoder(TEXTS), expected, atol=1e-6)
        assert encoder.width() == expected.shape[1]
        assert encoder([]).shape == (0, 8)

    def test_many_texts_are_what_each_is_alone(self, encoder):
        many = [f"{text} {number}" for number in range(40) for text in TEXTS]
        np.testing.assert_allclose(encoder(many)[70:], encoder(many[70:]), atol=1e-6)

    def test_signatures_know_which_weights(self, tiny_clip, encoder, tmp_path):
        name = f"clip:tiny@{tiny_clip[1]}"
        made = encode(name, ["fox", "car"], [[TEXTS[0]], TEXTS])
        np.testing.assert_allclose(made.values[1], encoder(TEXTS).mean(axis=0), atol=1e-3)
        moved = tiny_clip[1].rename(tmp_path / "moved.safetensors")
        assert find_encoder(f"clip:tiny@{moved}").facts() == encoder.facts() == made.source["facts"]
        tensors = load_file(moved)
        save_file({**tensors, "ln_final.bias": tensors["ln_final.bias"] + 1}, moved)
        assert find_encoder(f"clip:tiny@{moved}").facts() != encoder.facts()

    def test_long_texts_are_cut(self, encoder):
        assert encoder.cuts(["fox", "fox " * 14, "fox " * 15]) == [False, False, True]  # and a token at each end


class TestImageTower:
    def test_its_features_are_open_clips_normalised_as_it_wants(self, tiny_clip):
        frozen = backbone(tiny_clip[1])
        levels = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 3, 32, 32), dtype=np.uint8))
        open_clip = import_open_clip()
        mean, std = (
            torch.tensor(values).reshape(3, 1, 1)
            for values in (open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD)
        )
        with torch.no_grad():
            expected = tiny_clip[0].encode_image((levels / 255 - mean) / std).numpy()
        np.testing.assert_allclose(frozen(levels, torch.device("cpu")), expected, atol=1e-5)
        assert (frozen.shape, frozen.preprocessing.sample_shape) == ((8,), (3, 32, 32))
        assert frozen.preprocessing.interpolation == "bicubic"

    def test_what_a_tag_wants_of_images(self, tiny_clip):
        config = import_open_clip().get_pretrained_cfg("ViT-B-16-SigLIP", "webli")
        wanted = find_backbone("clip:ViT-B-16-SigLIP/webli").preprocessing()
        assert (wanted.mean, wanted.std) == (config["mean"], config["std"]) == ((0.5,) * 3, (0.5,) * 3)
        assert wanted.sample_shape == (3, 224, 224)
        assert find_backbone("clip:ViT-B-16-SigLIP").preprocessing() == wanted  # a file's are the first tag's

    def test_random_weights(self, tiny_clip, caplog):
        assert backbone("random").shape == (8,)
        assert "clip:tiny has random weights" in caplog.text


def test_both_towers_are_listed_by_the_same_names(tiny_clip):
    assert TAG in list_encoders()
    assert list(list_encoders("clip:*")) == list_backbones("clip:*")
    assert "minilm" in list_encoders()


def test_open_clip_talks_to_nobody(tiny_clip, caplog, monkeypatch):
    root = logging.getLogger()
    before = list(root.handlers), list(root.filters)
    find_encoder(f"clip:tiny@{tiny_clip[1]}")(TEXTS)
    backbone(tiny_clip[1])
    assert not [record for record in caplog.records if record.name == "root"]
    assert (list(root.handlers), list(root.filters)) == before


def test_chance_is_left_alone(tiny_clip):
    before = torch.get_rng_state()
    find_encoder(f"clip:tiny@{tiny_clip[1]}")(TEXTS)
    backbone(tiny_clip[1])
    assert torch.equal(torch.get_rng_state(), before)


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "refusal"),
        [
            ("clip:ViT-B-23", "unknown-name ViT-B-23 32"),
            ("clip:", "unknown-name open_clip"),
            ("clip:ViT-B-32/laion2b_s34b", "unknown-name laion2b_s34b"),
            ("clip:ViT-B-32", "weights-missing 32"),
            ("clip:tiny", "weights-missing"),
            ("clip:tiny@nowhere.safetensors", "file-missing nowhere.safetensors"),
            ("clip:tiny@nowhere.npz", "weights-form"),
        ],
    )
    def test_names(self, tiny_clip, name, refusal):
        with refused(refusal):
            find_encoder(name)(TEXTS)
        if "@" not in name:
            with refused(refusal):
                FrozenBackbone.load(Extractor(backbone=name))

    def test_a_hub_out_of_reach(self, tiny_clip, no_hub):
        with refused("weights-unreachable"):
            find_encoder(TAG)(TEXTS)

    def test_a_damaged_file(self, tiny_clip):
        tiny_clip[1].write_bytes(tiny_clip[1].read_bytes()[:1000])
        for load in (lambda: find_encoder(f"clip:tiny@{tiny_clip[1]}")(TEXTS), lambda: backbone(tiny_clip[1])):
            with refused("weights-unreadable"):
                load()

    def test_weights_of_another_model(self, tiny_clip, tiny_weights):
        with refused("weights-other"):
            backbone(tiny_weights)
        with refused("weights-other"):
            find_encoder(f"clip:tiny@{tiny_weights}")(TEXTS)

    def test_pickle_does_not_run(self, tiny_clip, tmp_path):
        class Evil:
            def __reduce__(self):
                return builtins.open, (str(tmp_path / "owned"), "w")

        torch.save({"visual.proj": Evil()}, tmp_path / "evil.pt")
        with refused("weights-unreadable"):
            backbone(tmp_path / "evil.pt")
        assert not (tmp_path / "owned").exists()

    def test_a_file_goes_to_a_backbone_apart(self, tiny_clip):
        with refused("weights-form"):
            find_backbone("clip:tiny@x.safetensors")

    def test_open_clip_is_not_installed(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "open_clip", None)
        for find in (find_encoder, find_backbone):
            with refused("extra-missing"):
                find(TAG)
