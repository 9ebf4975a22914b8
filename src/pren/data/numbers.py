"""The embedded data set: the numbers 00 to 99, written with real handwritten digits.

scikit-learn has 1,797 handwritten digits of 8 x 8 pixels. Two of them side by side make a number, and its signature
says which digits it has, so a method can recognise unseen numbers from seen ones. The pool has other samples of the
digits than the training images, and it is slanted, blurred and noisy (`Shift`): without this shift a transductive
method would gain nothing.
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

from pren.data.describe import Signatures
from pren.foundation.errors import PrenError
from pren.foundation.seeds import stream
from pren.problem import Answers, Problem, Setting

DATA_SEED = 1797  # the data do not depend on a run's seed
SPLITS = ("test", "val")
FORMS = ("images", "features")
HEIGHT, WIDTH = 16, 32
POOL_SEEN_PER_CLASS = 8  # GZSL: 80 seen classes x 8 are about as many images as 20 unseen classes x 30

# Each list is two symbols of a random Latin square (rows: tens, columns: units), so that every digit occurs twice as
# tens and twice as units. Written out, so that a split does not change with the version of NumPy.
TEST_NUMBERS = (0, 2, 18, 19, 23, 25, 36, 39, 40, 44, 52, 57, 61, 67, 75, 78, 81, 84, 93, 96)
VAL_NUMBERS = (3, 7, 15, 17, 24, 26, 32, 38, 42, 45, 51, 56, 64, 69, 71, 73, 80, 88, 90, 99)

# The layout in pixels: the position of the digits, and their uniform jitter.
CENTRE = 7.5  # of a digit, left and right of the middle of the image
SIZE = 14.5  # of the square that a digit of 8 x 8 pixels is stretched to
JITTER = (0.8, 0.7, 1.0)  # across, down, size

Half = Literal["train", "pool"]


@dataclass(frozen=True)
class Shift:
    """How pool images differ from training images; zeros mean no difference."""

    slant: float = 0.6  # pixels to the right for each pixel up
    blur: float = 0.5  # standard deviation of a Gaussian blur, in pixels
    noise: float = 0.12  # standard deviation of Gaussian noise; white is 1

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, astuple(self))) or min(self.blur, self.noise) < 0:
            raise PrenError("shift-value", f"{self} must be finite, and its blur and noise not negative.")


NO_SHIFT = Shift(slant=0.0, blur=0.0, noise=0.0)


class _Draws(NamedTuple):
    """The random choices for n numbers."""

    samples: NDArray[np.int64]  # (n, 2) the left and the right digit, as rows of scikit-learn's data
    jitter: NDArray[np.float64]  # (n, 2, 3) jitter across, down and in size, from -1 to 1


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
        split: "test" (80 seen classes, 20 unseen) or "val" (20 of those 80 are unseen; the 20 unseen ones of "test" and
            their signatures are left out).
        setting: "zsl", or "gzsl", where the pool also holds 8 new images of every seen class.
        form: "images" (1, 16, 32), or "features", the same pixels as (512,).
        shift: How the pool differs; `Shift()` by default.
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
    from sklearn.datasets import load_digits  # late, because the import takes a second

    data = load_digits()
    return (data.images / 16).astype(np.float32), data.target.astype(np.int64)


@cache
def _bank(half: Half, digit: int) -> NDArray[np.int64]:
    """The samples of a digit for training images or for pool images: half of them each."""
    samples = stream(DATA_SEED, "halves", digit).permutation(np.flatnonzero(_digits()[1] == digit))
    middle = len(samples) // 2
    return samples[:middle] if half == "train" else samples[middle:]


def _draw(half: Half, split: str, name: str, count: int) -> _Draws:
    """Draw `count` numbers of class `name`.

    Training images are the same in both splits. Pool images are not: images used for tuning on "val" must not be in the
    GZSL pool of "test", where these classes are seen.
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
    # From a point on the canvas to the point in the digit, both from -1 to 1 in each direction.
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
