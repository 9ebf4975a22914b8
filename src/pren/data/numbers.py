"""The embedded data set: the numbers 00 to 99, written with real handwritten digits.

scikit-learn carries 1,797 handwritten digits of 8 x 8 pixels. Two of them side by side make a number, and the number's
signature says which digit stands where, so a number nobody has labelled can be told from those that somebody has. The
digits of the pool come from other samples than those of the training images, and the pool is slanted, blurred and noisy
(`Shift`): without such a shift there would be nothing for a transductive method to gain.
"""

from __future__ import annotations

import math
from dataclasses import asdict, astuple, dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from pren.describe import Signatures
from pren.foundation.errors import PrenError
from pren.foundation.seeds import stream
from pren.problem import Answers, Problem, Setting

DATA_SEED = 1797  # the data are fixed: no run's seed moves them
SPLITS = ("test", "val")
FORMS = ("images", "features")
HEIGHT, WIDTH = 16, 32
POOL_SEEN_PER_CLASS = 8  # GZSL: 80 seen classes x 8 are about as many images as 20 unseen classes x 30

# Two symbols of one random Latin square each (rows: tens, columns: units), so that in both lists every digit occurs
# twice as tens and twice as units. Written out, because a split must not move with a version of NumPy.
TEST_NUMBERS = (0, 2, 18, 19, 23, 25, 36, 39, 40, 44, 52, 57, 61, 67, 75, 78, 81, 84, 93, 96)
VAL_NUMBERS = (3, 7, 15, 17, 24, 26, 32, 38, 42, 45, 51, 56, 64, 69, 71, 73, 80, 88, 90, 99)

# The layout in pixels: where the digits stand, and how far each may stray from that (uniformly, to both sides).
CENTRE = 7.5  # of a digit, left and right of the middle of the image
SIZE = 14.5  # of the square that a digit of 8 x 8 pixels is stretched to
JITTER = (0.8, 0.7, 1.0)  # across, down, size

Half = Literal["train", "pool"]


@dataclass(frozen=True)
class Shift:
    """How pool images differ from training images; all zeros means not at all."""

    slant: float = 0.6  # pixels to the right for each pixel up
    blur: float = 0.5  # standard deviation of a Gaussian blur, in pixels
    noise: float = 0.12  # standard deviation of Gaussian noise; white is 1

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, astuple(self))) or min(self.blur, self.noise) < 0:
            raise PrenError(
                "shift-value", f"A shift must be finite, its blur and noise not negative, but it is {self}."
            )


NO_SHIFT = Shift(slant=0.0, blur=0.0, noise=0.0)


class _Draws(NamedTuple):
    """What chance decides about n numbers."""

    samples: NDArray[np.int64]  # (n, 2) which handwritten digit stands left and right, as rows of scikit-learn's data
    jitter: NDArray[np.float64]  # (n, 2, 3) how far each strays across, down and in size, from -1 to 1


def load_numbers(
    split: str = "test",
    setting: Setting = "zsl",
    form: str = "images",
    shift: Shift | None = None,
    per_class: int = 30,
    pool_per_class: int = 30,
) -> tuple[Problem, Answers]:
    """Compose the data set; the same arguments give the same bytes.

    Args:
        split: "test" (80 seen classes, 20 unseen) or "val" (20 of those 80 play the unseen ones; the 20 of "test" are
            left out altogether, their signatures included).
        setting: "zsl", or "gzsl", where the pool also holds 8 new images of every seen class.
        form: "images" (1, 16, 32), or "features", the same pixels as (512,).
        shift: How the pool differs; `Shift()` if left out.
        per_class: Training images of each seen class.
        pool_per_class: Pool images of each unseen class.

    Raises:
        PrenError: If there is no such split, setting or form, or a count is not positive.
    """
    _check(split, form, per_class, pool_per_class)
    shift = shift or Shift()
    names, unseen = split_classes(split)
    seen = [name for name in names if name not in unseen]
    row = {name: index for index, name in enumerate(names)}

    train = np.concatenate([_images("train", split, name, per_class, NO_SHIFT) for name in seen])
    labels = np.repeat([row[name] for name in seen], per_class)
    counts = dict.fromkeys(unseen, pool_per_class)
    if setting == "gzsl":
        counts |= dict.fromkeys(seen, POOL_SEEN_PER_CLASS)
    pool = np.concatenate([_images("pool", split, name, count, shift) for name, count in counts.items()])
    answers = np.repeat([row[name] for name in counts], list(counts.values()))
    order = stream(DATA_SEED, "pool order").permutation(len(pool))
    pool, answers = pool[order], answers[order]

    if form == "features":
        train, pool = (images.reshape(len(images), -1) for images in (train, pool))
    signatures = _signatures(names)
    source = {
        "name": "numbers",
        "split": split,
        "form": form,
        "shift": asdict(shift),
        "signatures": signatures.record(),
    }
    backbone = "small-cnn" if form == "images" else None
    arrays = (train, labels, signatures.values, pool, names)
    problem = Problem.from_arrays(
        *arrays, setting=setting, backbone=backbone, source=source, attributes=signatures.attributes
    )
    return problem, Answers(answers.astype(np.int64))


def split_classes(split: str) -> tuple[list[str], list[str]]:
    """Return all classes of a split, and the unseen ones among them."""
    left_out, unseen = ((), TEST_NUMBERS) if split == "test" else (TEST_NUMBERS, VAL_NUMBERS)
    return [f"{number:02d}" for number in range(100) if number not in left_out], [f"{number:02d}" for number in unseen]


def _check(split: str, form: str, per_class: int, pool_per_class: int) -> None:
    for what, choice, known in (("split", split, SPLITS), ("form", form, FORMS)):
        if choice not in known:
            raise PrenError("unknown-name", f"numbers has no {what} {choice!r}: choose one of {', '.join(known)}.")
    for what, count in (("per_class", per_class), ("pool_per_class", pool_per_class)):
        if count < 1:
            raise PrenError("too-few", f"{what} must be at least 1, not {count}.")


def _signatures(names: list[str]) -> Signatures:
    """(L, 20): one-hot tens, then one-hot units."""
    digits = np.array([[int(digit) for digit in name] for name in names])
    attributes = tuple(f"{place} {digit}" for place in ("tens", "units") for digit in range(10))
    values = np.eye(10)[digits].reshape(len(names), 20)
    return Signatures(tuple(names), values, {"kind": "attributes", "coding": "one-hot tens and units"}, attributes)


@cache
def _digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """(1797, 8, 8) images from 0 to 1 and (1797,) what they show."""
    from sklearn.datasets import load_digits  # here, because it takes a second that other data need not wait for

    data = load_digits()
    return (data.images / 16).astype(np.float32), data.target.astype(np.int64)


@cache
def _bank(half: Half, digit: int) -> NDArray[np.int64]:
    """The samples of a digit that training images, or pool images, are made of: half of them each."""
    samples = stream(DATA_SEED, "halves", digit).permutation(np.flatnonzero(_digits()[1] == digit))
    middle = len(samples) // 2
    return samples[:middle] if half == "train" else samples[middle:]


def _draw(half: Half, split: str, name: str, count: int) -> _Draws:
    """Draw `count` numbers of class `name`.

    Training images are the same in both splits. Pool images are not: what was looked at while tuning on "val" must not
    come back in the GZSL pool of "test", where the classes of the former are seen ones.
    """
    use = "train" if half == "train" else f"pool {split}"
    chance = stream(DATA_SEED, use, int(name)).random((count, 2, 4))
    banks = [_bank(half, int(digit)) for digit in name]
    samples = [bank[(chance[:, side, 0] * len(bank)).astype(np.int64)] for side, bank in enumerate(banks)]
    return _Draws(np.stack(samples, axis=1), 2 * chance[:, :, 1:] - 1)


def _images(half: Half, split: str, name: str, count: int, shift: Shift) -> NDArray[np.float32]:
    """(count, 1, 16, 32) images of class `name`, from 0 to 1 in 256 steps, so that a PNG file holds them exactly."""
    images: NDArray[np.floating[Any]] = _compose(_draw(half, split, name, count), shift.slant)
    if shift.blur:
        images = gaussian_filter(images, sigma=(0, shift.blur, shift.blur))
    if shift.noise:
        noise = stream(DATA_SEED, f"noise {half} {split}", int(name)).standard_normal(images.shape)
        images = images + shift.noise * noise
    levels: NDArray[np.float32] = np.rint(images.clip(0, 1) * 255).astype(np.float32)
    return (levels / np.float32(255))[:, None]


def _compose(draws: _Draws, slant: float) -> NDArray[np.float32]:
    """Put two digits on each canvas: (n, 16, 32), may exceed 1 where they overlap."""
    count = len(draws.samples)
    across, down, size = np.moveaxis(draws.jitter * JITTER, -1, 0)
    across = across + np.array([-CENTRE, CENTRE])
    scale = 2 / (SIZE + size)
    # From a place on the canvas to the place in the digit that is seen there; both run from -1 to 1 each way.
    transform = np.zeros((count, 2, 2, 3))
    transform[..., 0, 0] = scale * WIDTH / 2
    transform[..., 0, 1] = scale * HEIGHT / 2 * slant
    transform[..., 0, 2] = -scale * (across + slant * down)
    transform[..., 1, 1] = scale * HEIGHT / 2
    transform[..., 1, 2] = -scale * down
    theta = torch.from_numpy(transform.reshape(2 * count, 2, 3).astype(np.float32))
    grid = F.affine_grid(theta, [2 * count, 1, HEIGHT, WIDTH], align_corners=False)
    digits = torch.from_numpy(_digits()[0][draws.samples.reshape(-1)])[:, None]
    placed = F.grid_sample(digits, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    result: NDArray[np.float32] = placed.reshape(count, 2, HEIGHT, WIDTH).sum(dim=1).numpy()
    return result
