"""How photographs look, and making others look like them."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from refusals import refused

from pren.images.decoding import quality_of_file
from pren.images.files import ImageFiles
from pren.images.look import LARGEST, LOOK, SIDE, WHOLE, Altered, Look, Sample, signs
from pren.images.preprocessing import plain
from pren.images.side_by_side import FeatureStore, SideBySide

looks = st.builds(
    Look,
    side=st.none() | st.integers(1, 60),
    colour=st.floats(0, 1),
    contrast=st.floats(0, 1),
    light=st.floats(-255, 255),
    blur=st.floats(0, 5),
    noise=st.floats(0, 60),
    quality=st.integers(1, WHOLE),
)


def picture(seed, mode="RGB", size=(40, 30)):
    """Patches of colour with noise."""
    rng = np.random.default_rng(seed)
    patches = Image.fromarray(rng.integers(40, 200, (5, 7, 3), dtype=np.uint8)).resize(size, Image.Resampling.NEAREST)
    return Image.fromarray((np.asarray(patches) + rng.integers(0, 30, (size[1], size[0], 3))).astype(np.uint8)).convert(
        mode
    )


def levels(image):
    return np.asarray(image).astype(float)


@given(looks, st.sampled_from(["RGB", "L"]), st.integers(0, 3))
def test_the_same_photograph_always_looks_the_same(look, mode, seed):
    image = picture(seed, mode)
    before = image.tobytes()
    once, twice = look(image), look(picture(seed, mode))
    assert (once.mode, once.tobytes()) == (twice.mode, twice.tobytes())
    assert once.mode == mode
    assert max(once.size) == (look.side or 40)
    assert image.tobytes() == before, "it is a copy that changes"


@given(looks)
def test_it_never_gives_more_colour_or_contrast(look):
    quiet = look.model_copy(update={"noise": 0.0, "quality": WHOLE, "side": None})
    image = picture(1)
    after = levels(quiet(image))
    assert np.ptp(after) <= np.ptp(levels(image)) * quiet.contrast + 1.01 or quiet.contrast == 1
    spread = np.ptp(levels(image), axis=2).max()
    assert np.ptp(after, axis=2).max() <= quiet.colour * quiet.contrast * spread + 3


def test_nothing_to_do_is_nothing():
    image = picture(0)
    assert Look()(image) is image
    assert Look().done() == ""


def test_levels_by_a_loop():
    look, image = Look(contrast=0.5, light=-30), picture(2)
    expected = [min(max(round(0.5 * level - 30), 0), 255) for level in image.tobytes()]
    assert list(look(image).tobytes()) == expected


def test_grey_has_equal_channels():
    red, green, blue = Look(colour=0)(picture(3)).split()
    assert red.tobytes() == green.tobytes() == blue.tobytes()


def test_noise_has_its_deviation_and_differs_between_photographs():
    flat = [Image.new("RGB", (200, 150), (level, 120, 120)) for level in (120, 121)]
    grain = [levels(Look(noise=12)(image)) - levels(image) for image in flat]
    assert grain[0].std() == pytest.approx(12, rel=0.05)
    assert abs(np.corrcoef(grain[0].ravel(), grain[1].ravel())[0, 1]) < 0.05


@pytest.mark.parametrize("quality", [5, 20, 50, 75, 95])
def test_the_quality_of_a_file(quality):
    file = io.BytesIO()
    picture(0).save(file, "JPEG", quality=quality)
    side, found = quality_of_file(file.getvalue(), Path("x.jpg"))
    assert side == 40
    assert abs(found - quality) <= 1


def test_the_quality_of_other_files():
    file = io.BytesIO()
    picture(0).save(file, "PNG")
    assert quality_of_file(file.getvalue(), Path("x.png")) == (40, WHOLE)
    with refused("input-unreadable"):
        quality_of_file(b"no picture", Path("x.png"))


def test_signs_by_loops():
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8))
    colour, light, contrast = signs([image])[0, :3]
    pixels = levels(image).reshape(-1, 3)[::97]
    grey = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in pixels]
    away = [abs(level - mean) for pixel, mean in zip(pixels, grey, strict=True) for level in pixel]
    assert [colour, light, contrast] == pytest.approx([np.mean(away), np.mean(grey), np.std(grey)], rel=0.1)


def test_signs_tell_what_was_done():
    images = [picture(seed, size=(SIDE, SIDE)) for seed in range(3)]
    plain_signs = signs(images).mean(axis=0)
    for look, sign, more in (
        (Look(colour=0.2), 0, False),
        (Look(light=-40), 1, False),
        (Look(contrast=0.5, light=60), 2, False),
        (Look(blur=2), 6, False),
        (Look(noise=40), 6, True),
    ):
        assert (signs(images, look).mean(axis=0)[sign] > plain_signs[sign]) == more, look


def test_a_sample_leaves_out_what_cannot_be_read(tmp_path):
    for number in range(4):
        picture(number).save(tmp_path / f"{number}.jpg", quality=60)
    (tmp_path / "1.jpg").write_bytes(b"no picture")
    files = ImageFiles(tmp_path, [f"{number}.jpg" for number in range(4)])
    sample = Sample.of(files, np.array([1, 3]))
    assert sample.places.tolist() == [3]
    assert (sample.sides.tolist(), sample.qualities.tolist(), sample.signs.shape) == ([40], [60], (1, 7))
    nothing = Sample.of(files, np.array([1]))
    assert (len(nothing.images), nothing.signs.shape) == (0, (0, 7))


def test_photographs_are_altered_before_they_are_prepared():
    wanted, look, image = plain((3, 20, 20)), Look(colour=0, noise=9), picture(5)
    altered = Altered(look=look, **wanted.model_dump())
    np.testing.assert_array_equal(altered(image), wanted(look(image)))
    assert altered != wanted


def test_altered_features_have_a_cache_of_their_own(tiny, tmp_path, draw_files, fabric):
    store, files = FeatureStore(tmp_path / "cache", SideBySide((tiny,))), draw_files(tmp_path, 2)
    altered = store.altered(Look(colour=0))
    assert altered.folder != store.folder
    assert altered.folder == store.altered(Look(colour=0)).folder != store.altered(Look(colour=0.5)).folder
    made = [each.extract(files, fabric, 0).inputs for each in (store, altered)]
    assert made[0].digest() != made[1].digest()
    assert not np.allclose(*(each[np.arange(2)].numpy() for each in made))
    untouched = replace(tiny)
    assert untouched.facts == tiny.facts
    assert "look" not in tiny.facts["preprocessing"], "caches made before are still good"


def test_the_record():
    look = Look(side=LARGEST, colour=0, blur=1.2, quality=20)
    assert Look.known({LOOK: look.model_dump(mode="json")}) == look
    assert Look.known({}) is None
    assert Look.known(None) is None
    assert look.done() == "made grey, blurred (radius 1.2), compressed (JPEG 20)"
    assert look.done() in look.sentence()
    with refused("damaged"):
        Look.known({LOOK: {"noise": -1}})
