"""A pool from another camera, of generated photographs and a network of one layer."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import pren
from pren.images.files import ImageFiles
from pren.images.look import LOOK, Look, Sample
from pren.images.preprocessing import plain
from pren.images.registered import BACKBONES, register_backbone
from pren.runs import camera
from pren.runs.camera import distance, match, parts_of

SIZE, CLASSES, EACH, UNSEEN = (120, 96), 8, 6, 3
LABELS = np.repeat(np.arange(CLASSES), EACH)
NIGHT = Look(colour=0, contrast=0.5, light=-10)


class Squares(nn.Module):
    """The mean colour of each of 16 squares, and how much they vary."""

    num_features = 96

    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, images):
        mean = nn.functional.adaptive_avg_pool2d(images, 4)
        square = nn.functional.adaptive_avg_pool2d(images**2, 4)
        return self.scale * torch.cat([mean, 4 * (square - mean**2).clamp(min=0).sqrt()], 1).flatten(1)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    for name, few in (("ROUGHLY", 3), ("NEARLY", 4), ("TRIES", 16)):
        monkeypatch.setattr(camera, name, few)
    monkeypatch.setattr(BACKBONES, "_entries", {**BACKBONES._entries})
    register_backbone("squares", Squares, plain((3, 32, 32)), "squares", lambda network: None)


def photograph(label, number):
    """A scene of patches around a patch that is alike in a class."""
    rng = np.random.default_rng([label, number])
    scene = rng.integers(20, 230, (12, 15, 3), dtype=np.uint8)
    scene[3:9, 4:11] = np.random.default_rng(label).integers(0, 256, (6, 7, 3))
    pixels = np.asarray(Image.fromarray(scene).resize(SIZE, Image.Resampling.NEAREST)).astype(float)
    return Image.fromarray(np.clip(pixels + rng.normal(0, 6, pixels.shape), 0, 255).astype(np.uint8))


def write(folder, labels, look=None, quality=92):
    """Photographs of classes as files, those of a class with different numbers."""
    folder.mkdir(parents=True)
    names = [f"{label}-{number}.jpg" for label in sorted(set(labels)) for number in range(labels.count(label))]
    for name in names:
        image = photograph(*map(int, name[:-4].split("-")))
        (image if look is None else look(image)).save(folder / name, quality=quality)
    return ImageFiles(folder, names)


def sample(folder, labels, look=None, quality=92):
    return Sample.of(write(folder, labels, look, quality), np.arange(len(labels)))


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    return sample(tmp_path_factory.mktemp("labelled") / "x", LABELS.tolist())


def matched(labelled, folder, look, quality=92):
    return match(labelled, LABELS, sample(folder / "pool", [20, 21, 22] * 8, look, quality), UNSEEN)


class TestMatch:
    def test_photographs_that_are_alike(self, labelled, tmp_path):
        assert matched(labelled, tmp_path, None) == Look()

    def test_a_pool_without_colour(self, labelled, tmp_path):
        assert matched(labelled, tmp_path, Look(colour=0)) == Look(colour=0)

    def test_more_colour_and_contrast_are_not_made(self, labelled, tmp_path):
        dull = labelled._replace(images=[Look(colour=0, contrast=0.5, light=60)(image) for image in labelled.images])
        signs = camera.signs(dull.images)
        pool = sample(tmp_path / "pool", [20, 21, 22] * 8)
        found = match(dull._replace(signs=signs), LABELS, pool, UNSEEN)
        assert (found.colour, found.contrast) == (1, 1)

    def test_a_dark_pool(self, labelled, tmp_path):
        found = matched(labelled, tmp_path, Look(contrast=0.4, light=10))
        assert found.contrast == pytest.approx(0.4, abs=0.06)
        assert found.light == pytest.approx(10, abs=10)
        assert (found.colour, found.noise, found.quality) == (1, 0, 100)

    def test_a_blurred_pool(self, labelled, tmp_path):
        found = matched(labelled, tmp_path, Look(blur=2))
        assert found.blur == pytest.approx(2, abs=0.6)
        assert found.side == max(SIZE)

    def test_noise_and_compression(self, labelled, tmp_path):
        found = matched(labelled, tmp_path, Look(noise=30), quality=20)
        assert abs(found.quality - 20) <= 1
        assert found.noise > 10


def test_parts():
    look = Look(colour=0.1, light=20, blur=1, side=120)
    without = [
        look.model_copy(update={"colour": 1.0}),
        look.model_copy(update={"light": 0.0}),
        Look(colour=0.1, light=20),
    ]
    assert parts_of(look) == [look, *without]
    assert parts_of(Look(colour=0)) == [Look(colour=0)]


def test_distance_by_a_loop():
    rng = np.random.default_rng(0)
    ours, theirs, labels = rng.normal(size=(9, 2)), rng.normal(2, 1, size=(7, 2)), np.arange(9) % 3
    means = [sum(ours[i] for i in range(9) if labels[i] == row) / 3 for row in range(3)]
    within = sum(((ours[i] - means[labels[i]]) ** 2).sum() for i in range(9)) / 6
    centre = sum(means) / 3
    squared = ((sum(theirs) / 7 - centre) ** 2).sum()
    between = max(sum(((mean - centre) ** 2).sum() for mean in means) / 2 - within / 3, 0)
    expected = between * (1 / 3 + 1 / 4) + within * (1 / 9 + 1 / 7)
    assert distance(ours, labels, theirs, 4) == pytest.approx((squared, squared / expected))


@pytest.fixture
def folder(tmp_path):
    """Write a folder whose pool has a look."""

    def build(look=None):
        place = tmp_path / "birds"
        for label in range(CLASSES):
            write(place / "images" / str(label), [label] * EACH)
        write(place / "unlabelled", [20, 21, 22] * 10, look)
        rows = [
            f"{label},{','.join(map(str, np.random.default_rng(label).random(6)))}" for label in [*range(8), 20, 21, 22]
        ]
        (place / "signatures.csv").write_text("\n".join(["class,a,b,c,d,e,f", *rows, ""]))
        return place

    return build


def fit(folder, out=None, **settings):
    return pren.fit(folder, out, method="pren-pool", backbone="squares", rehearsals=0, setting="zsl", **settings)


class TestFit:
    def test_a_pool_of_another_camera(self, folder, tmp_path, monkeypatch):
        place = folder(NIGHT)
        result = fit(place, tmp_path / "run", cache=tmp_path / "cache", report=False)
        look = Look.known(result.config.record["source"])
        assert look.colour == 0
        assert look.contrast < 0.8
        assert look.sentence() in result.lines()
        facts = result.outcome.method.extractor_["facts"]
        assert LOOK not in facts["preprocessing"], "a new photograph is taken as it is"
        monkeypatch.setattr(camera, "find_look", None)  # a finished run knows what was found
        again = pren.load_result(tmp_path / "run", with_data=True)
        assert again.labels.labels.tolist() == result.labels.labels.tolist()
        plainly = fit(place, alike=False, cache=tmp_path / "cache")
        assert LOOK not in plainly.config.record["source"]
        assert plainly.config.record["hashes"]["data"] != result.config.record["hashes"]["data"]
        assert plainly.config.record["id"] != result.config.record["id"]

    def test_photographs_that_are_alike(self, folder, tmp_path):
        result = fit(folder(), cache=tmp_path / "cache")
        assert LOOK not in result.config.record["source"]
        assert len(list((tmp_path / "cache").iterdir())) == 1, "nothing was altered"

    def test_only_where_rehearsals_agree(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr(camera, "better_in_rehearsals", lambda *given: False)
        result = fit(folder(NIGHT), cache=tmp_path / "cache")
        assert LOOK not in result.config.record["source"]
