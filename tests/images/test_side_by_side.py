"""Several frozen backbones: the features of each, each image's brought to unit length, one after the other."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from refusals import refused
from torch import nn

from pren.images import extraction
from pren.images.backbones import find_backbone, split_names
from pren.images.cache import CachedFeatures, FeatureCache
from pren.images.extraction import Extractor, FrozenBackbone, extract
from pren.images.files import ImageFiles
from pren.images.photographs import freeze, recorded_backbone
from pren.images.preprocessing import Preprocessing
from pren.images.registered import BACKBONES, register_backbone
from pren.images.side_by_side import FeatureStore, JoinedFeatures, SideBySide, joined, single_extractors
from pren.problem import ClassTable, Problem

SIZES = {"small": (3, 10, 12), "large": (3, 14, 8), "huge": (3, 16, 16)}
WIDTHS = {"small": 4, "large": 6, "huge": 9}


class Toy(nn.Module):
    """The means of the image's rows, mixed and scaled."""

    def __init__(self, height, width, scale):
        super().__init__()
        self.num_features = width
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(width)
            self.mix = nn.Linear(3 * height, width)
        self.scale = scale

    def forward(self, images):
        return self.mix(images.mean(dim=3).flatten(1)) * self.scale


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(BACKBONES, "_entries", {**BACKBONES._entries})
    for place, (name, size) in enumerate(SIZES.items()):

        def build(channels, name=name, height=size[1], scale=10.0**place):
            return Toy(height, WIDTHS[name], scale)

        register_backbone(name, build, Preprocessing(sample_shape=size), "a toy", lambda network: None)


@pytest.fixture
def files(tmp_path, draw_files):
    return draw_files(tmp_path / "images", 7)


@pytest.fixture
def store(tmp_path):
    def build(name, folder="cache"):
        return FeatureStore(tmp_path / folder, SideBySide.load(Extractor(backbone=name)))

    return build


def whole(inputs):
    return inputs[np.arange(len(inputs))]


def by_hand(*blocks):
    """Every image's blocks, each divided by its length, one after the other."""
    images = []
    for rows in zip(*blocks, strict=True):
        image = []
        for row in rows:
            length = sum(float(value) ** 2 for value in row) ** 0.5
            image += [float(value) / length if length else 0.0 for value in row]
        images.append(image)
    return torch.tensor(images)


# --- the formula

numbers = st.floats(-100, 100, width=32).map(lambda value: 0.0 if abs(value) < 1e-3 else value)
matrices = [arrays.arrays(np.float32, (4, width), elements=numbers) for width in (1, 3, 5)]


@given(st.tuples(*matrices))
def test_blocks_have_unit_length_and_stand_in_their_order(blocks):
    blocks = [torch.from_numpy(block) for block in blocks]
    assert torch.allclose(joined(blocks), by_hand(*blocks), atol=1e-6)


@given(st.tuples(*matrices), st.integers(0, 2), st.floats(0.01, 100))
def test_no_block_counts_for_more_because_its_numbers_are_larger(blocks, which, scale):
    blocks = [torch.from_numpy(block) for block in blocks]
    before = joined(blocks)
    blocks[which] = blocks[which] * scale
    assert torch.allclose(joined(blocks), before, atol=1e-5)


@given(matrices[2])
def test_one_block_is_left_as_it_is(block):
    assert joined([torch.from_numpy(block)]).equal(torch.from_numpy(block))


# --- through the caches


def test_features_are_those_of_each_alone(files, store, fabric):
    alone = {name: whole(store(name, f"of {name}").extract(files, fabric, workers=0).inputs) for name in SIZES}
    assert alone["huge"].norm(dim=1).mean() > 5 * alone["small"].norm(dim=1).mean()
    together = store("large+huge+small").extract(files, fabric, workers=0)
    assert (together.fresh, together.problems, len(together.inputs)) == (7, [], 7)
    assert together.inputs.sample_shape == store("large+huge+small").backbones.shape == (6 + 9 + 4,)
    expected = by_hand(alone["large"], alone["huge"], alone["small"])
    assert torch.allclose(whole(together.inputs), expected, atol=1e-6)
    places = np.array([5, 0, 5, 2])
    assert together.inputs[places].equal(whole(together.inputs)[places])
    assert whole(together.inputs.select(places)).equal(whole(together.inputs)[places])


def test_what_one_has_made_alone_is_not_made_again(files, store, fabric, monkeypatch):
    made = []
    call = FrozenBackbone.__call__

    def counted(self, levels, device):
        made.append((self.facts["backbone"], len(levels)))
        return call(self, levels, device)

    monkeypatch.setattr(FrozenBackbone, "__call__", counted)
    monkeypatch.setattr(extraction, "BATCH_ON_CPU", 100)
    store("small").extract(files, fabric, workers=0)
    assert store("small+large").extract(files, fabric, workers=0).fresh == 7
    assert made == [("small", 7), ("large", 7)]
    assert store("large+small").extract(files, fabric, workers=0).fresh == 0
    assert store("large").extract(files, fabric, workers=0).fresh == 0
    assert len(made) == 2


def test_one_backbone_is_what_it_was(files, store, fabric, tmp_path):
    frozen = FrozenBackbone.load(Extractor(backbone="small"))
    cache = FeatureCache(tmp_path / "cache", frozen.facts, frozen.shape)
    plain = cache.inputs(extract(files, frozen, cache, fabric, workers=0).rows)
    alone = store("small")
    found = alone.extract(files, fabric, workers=0)
    assert isinstance(found.inputs, CachedFeatures)
    assert (found.fresh, found.inputs.digest()) == (0, plain.digest())
    assert whole(found.inputs).equal(whole(plain))
    assert alone.backbones.facts == frozen.facts
    assert alone.backbones.shape == frozen.shape
    assert alone.folder == cache.folder
    assert store("small+large").folder == cache.folder.parent


def test_bad_files_are_left_out_of_all(files, store, fabric):
    for place in (1, 4):
        files.path(place).write_bytes(b"no picture")
    good = store("small+large").extract(files.select(np.array([0, 2, 3, 5, 6])), fabric, workers=0)
    found = store("small+large").extract(files, fabric, workers=0)
    assert [place for place, _ in found.problems] == [1, 4]
    assert "001.png cannot be read" in found.problems[0][1]
    assert whole(found.inputs).equal(whole(good.inputs))
    with refused("input-unreadable"):
        store("small+large").extract(files, fabric, workers=0, strict=True)


def test_a_file_that_only_one_has_read_is_left_out(files, store, fabric):
    def spoil(done, fresh, total):
        files.path(3).write_bytes(b"no picture")  # after the first backbone's only batch

    found = store("small+large").extract(files, fabric, workers=0, on_progress=spoil)
    assert [place for place, _ in found.problems] == [3]
    assert len(found.inputs) == 6


def test_progress_is_of_all_backbones_in_photographs(files, store, fabric):
    told = []
    store("small").extract(files.select(np.arange(4)), fabric, workers=0)
    store("small+large").extract(files, fabric, workers=0, on_progress=lambda *said: told.append(said))
    assert {total for _, _, total in told} == {7}
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[0][0] < 7, "the second one is still to come"
    assert told[-1] == (7, 5, 7), "3 + 7 of 14 were not in the cache"


def test_files_that_change_in_between_are_noticed(files, store, fabric):
    def change(done, fresh, total):
        files.path(0).write_bytes(files.path(1).read_bytes())

    with refused("files-changed"):
        store("small+large").extract(files, fabric, workers=0, on_progress=change)
    store("small+large").extract(files, fabric, workers=0)


def test_the_digest_is_of_backbones_and_images(files, store, fabric, tmp_path, draw_files):
    def digest(name, files=files):
        return store(name).extract(files, fabric, workers=0).inputs.digest()

    both = digest("small+large")
    assert both == digest("small+large", ImageFiles(tmp_path, [f"images/{number:03d}.png" for number in range(7)]))
    others = [digest("large+small"), digest("small+huge"), digest("small"), digest("small+large+huge")]
    others.append(digest("small+large", files.select(np.arange(6))))
    others.append(digest("small+large", draw_files(tmp_path / "others", 7, start=20)))
    assert len({both, *others}) == 7


def test_pictures_in_memory_get_the_same_features(files, store, fabric):
    kept = store("small+large")
    parts = kept.backbones.parts
    levels = [files.prepared(part.preprocessing).decoded(range(7))[0] for part in parts]
    assert [tuple(each.shape[1:]) for each in levels] == [SIZES["small"], SIZES["large"]]
    features = kept.backbones(levels, torch.device("cpu"))
    assert np.allclose(features, whole(kept.extract(files, fabric, workers=0).inputs), atol=1e-6)


# --- as the features of a problem, and of a model


@pytest.fixture
def frozen(tmp_path, draw_files, fabric):
    """A problem of two seen and two unseen classes, through two backbones."""
    signatures = np.random.default_rng(0).random((4, 3))
    classes = ClassTable.build("dcba", signatures, np.array([True, True, False, False]))
    train, pool = draw_files(tmp_path / "train", 6), draw_files(tmp_path / "pool", 5, start=50)
    problem = Problem(train, np.array([0, 1, 0, 1, 0, 1]), pool, classes)
    return freeze(problem, None, "small+large", tmp_path / "cache", fabric=fabric, workers=0)[0]


def test_a_problem_of_their_features(frozen):
    assert isinstance(frozen.train, JoinedFeatures)
    assert (len(frozen.train), len(frozen.pool), frozen.train.sample_shape) == (6, 5, (10,))
    assert frozen.backbone is None
    record = frozen.extractor
    assert record["asked"]["backbone"] == record["facts"]["backbone"] == "small+large"
    assert [part["backbone"] for part in record["facts"]["parts"]] == ["small", "large"]
    assert recorded_backbone(record).facts == record["facts"]


@pytest.mark.parametrize("change", ["scale", "part", "fewer", "order"])
def test_other_backbones_than_a_model_was_trained_with_are_refused(frozen, change):
    record, facts = frozen.extractor, frozen.extractor["facts"]
    one, two = facts["parts"]
    changed = {
        "scale": {**facts, "scale": "none"},
        "part": {**facts, "parts": [one, {**two, "weights": "others"}]},
        "fewer": {**facts, "parts": [one]},
        "order": {**facts, "parts": [two, one]},
    }[change]
    with refused("weights-other"):
        recorded_backbone({**record, "facts": changed})


# --- what cannot be asked of several


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"backbone": "small+large", "weights": "x.pth"}, "backbone-several 2"),
        ({"backbone": "small+large+huge", "until": "1"}, "backbone-several 3"),
        ({"backbone": "small+large+small"}, "backbone-twice small"),
        ({"backbone": "small+"}, "backbone-unknown"),
        ({"backbone": "small+larg"}, "backbone-unknown larg"),
    ],
)
def test_what_cannot_be(asked, refusal):
    with refused(refusal):
        SideBySide.load(Extractor(**asked))


def test_what_is_asked_of_each():
    asked = Extractor(backbone="small+large", weights="random", geometry="timm")
    each = single_extractors(asked)
    assert each == [Extractor(backbone=name, weights="random", geometry="timm") for name in ("small", "large")]
    one = Extractor(backbone="small", weights="x.pth", until="1")
    assert single_extractors(one) == [one]
    assert split_names("small") == ["small"]


def test_several_are_no_backbone_to_train():
    with refused("backbone-several"):
        find_backbone("small+large")


def test_no_backbone_can_be_called_like_several():
    with refused("backbone-name"):
        register_backbone("my+own", Toy, Preprocessing(sample_shape=(3, 8, 8)), "mine")
