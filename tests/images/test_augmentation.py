"""Flips and crops, against a plain loop over images and pixels."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pren.foundation.seeds import stream
from pren.images.augmentation import SCALES, STRETCH, augment


def some(count=6, height=5, width=7, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).random((count, 3, height, width)).astype(np.float32))


def chance(seed=0):
    return stream(seed, "test")


def bilinear(image, y, x):
    """The value of (H, W) at a place that lies between pixels; beyond the edge it goes on as it is there."""
    height, width = image.shape
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = min(int(y), height - 2), min(int(x), width - 2)
    v, u = y - top, x - left
    rows = [(1 - u) * image[top + each, left] + u * image[top + each, left + 1] for each in (0, 1)]
    return (1 - v) * rows[0] + v * rows[1]


def by_hand(images, kind, rng):
    """The same, image by image and pixel by pixel."""
    count, channels, height, width = images.shape
    result = images.numpy().copy()
    for place, draw in enumerate(rng.random(count)):
        if draw < 0.5:
            result[place] = result[place][:, :, ::-1].copy()
    if kind == "flip":
        return result
    draws = [rng.uniform(*SCALES, count), rng.uniform(-STRETCH, STRETCH, count)]
    draws += [rng.uniform(-1, 1, count), rng.uniform(-1, 1, count)]
    cropped = np.empty_like(result)
    for place, (area, stretch, x, y) in enumerate(zip(*draws, strict=True)):
        w, h = min(math.sqrt(area * math.exp(stretch)), 1), min(math.sqrt(area / math.exp(stretch)), 1)
        left, top = (1 + x * (1 - w) - w) / 2 * width, (1 + y * (1 - h) - h) / 2 * height  # of the crop, in pixels
        assert -1e-9 <= left <= left + w * width <= width + 1e-9
        assert -1e-9 <= top <= top + h * height <= height + 1e-9
        for row in range(height):
            for column in range(width):
                at = top + (row + 0.5) * h - 0.5, left + (column + 0.5) * w - 0.5
                for channel in range(channels):
                    cropped[place, channel, row, column] = bilinear(result[place, channel], *at)
    return cropped


@pytest.mark.parametrize("kind", ["flip", "flip-crop"])
def test_a_batch_is_what_a_loop_makes_of_it(kind):
    images = some()
    assert np.allclose(augment(images, chance(), kind).numpy(), by_hand(images, kind, chance()), atol=1e-4)


def test_half_of_the_images_are_mirrored_and_the_others_left_alone():
    images = some(400, 2, 3)
    changed = augment(images, chance(), "flip")
    mirrored = [torch.equal(new, old.flip(-1)) for new, old in zip(changed, images, strict=True)]
    same = [torch.equal(new, old) for new, old in zip(changed, images, strict=True)]
    assert all(a != b for a, b in zip(mirrored, same, strict=True))
    assert 150 < sum(mirrored) < 250


def test_off_is_the_identity_and_draws_nothing():
    images, rng = some(), chance()
    assert augment(images, rng, "none") is images
    assert rng.random() == chance().random()


@pytest.mark.parametrize("kind", ["flip", "flip-crop"])
def test_the_same_chance_gives_the_same_images(kind):
    images = some()
    before, state = images.clone(), torch.get_rng_state()
    assert torch.equal(augment(images, chance(1), kind), augment(images, chance(1), kind))
    assert not torch.equal(augment(images, chance(1), kind), augment(images, chance(2), kind))
    assert torch.equal(images, before)
    assert torch.equal(torch.get_rng_state(), state)


@given(
    count=st.integers(1, 4),
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    kind=st.sampled_from(["flip", "flip-crop"]),
    seed=st.integers(0, 99),
)
def test_values_stay_within_each_images_range(count, height, width, kind, seed):
    images = some(count, height, width, seed)
    changed = augment(images, chance(seed), kind)
    assert changed.shape == images.shape
    assert changed.dtype == images.dtype
    for new, old in zip(changed, images, strict=True):
        for channel in range(3):
            assert new[channel].min() >= old[channel].min() - 1e-6
            assert new[channel].max() <= old[channel].max() + 1e-6
