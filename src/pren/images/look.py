"""How photographs look (colour, light, sharpness, noise, compression), and how to make others look like them.

A cheap camera, or one at night, makes photographs that a network sees as another kind of thing. What a camera has taken
from a photograph can be taken from others; it cannot be given back. So a `Look` only takes away: it greys, flattens,
blurs, adds noise and compresses.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pren.foundation.errors import PrenError, reason
from pren.images.decoding import quality_of_file, shrunk, without_warnings
from pren.images.files import ImageFiles
from pren.images.preprocessing import Levels, Preprocessing, plain

LOOK = "look"  # of a problem's source
SIDE = 224  # of the square on which photographs are compared
LARGEST = 2 * SIDE  # larger photographs are altered at this size; a network sees no more of them
WHOLE = 100  # the quality of what is not compressed
BANDS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # edges of bands of frequencies, in cycles per pixel
SQUARE = plain((3, SIDE, SIDE))
LIGHT = np.array([0.299, 0.587, 0.114])  # of red, green and blue, as in JPEG
FAINT = 1e-3  # the power of less than any level
Vector = NDArray[np.float64]
Share = Annotated[float, Field(ge=0, le=1)]


class Look(BaseModel):
    """What is done to a photograph, in this order, so that it looks as if another camera had made it.

    Attributes:
        side: Its longer side becomes so many pixels; None leaves it, as does all else by default.
        colour: The share of the colour that stays.
        contrast: The share of the contrast that stays.
        light: What is added to the levels after that.
        blur: The radius of the blur, in pixels.
        noise: The standard deviation of the noise, in levels.
        quality: Of JPEG; `WHOLE` does not compress.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    side: Annotated[int, Field(ge=1, le=LARGEST)] | None = None
    colour: Share = 1.0
    contrast: Share = 1.0
    light: Annotated[float, Field(ge=-255, le=255)] = 0.0
    blur: Annotated[float, Field(ge=0, le=SIDE)] = 0.0
    noise: Annotated[float, Field(ge=0, le=255)] = 0.0
    quality: Annotated[int, Field(ge=1, le=WHOLE)] = WHOLE

    def __call__(self, image: Image.Image) -> Image.Image:
        """A photograph, RGB or L, as it would look. The noise goes by its pixels: the same one always gets the same."""
        if self == Look():
            return image
        drawn = np.random.default_rng(zlib.crc32(image.tobytes()))
        if self.side is not None and self.side != max(image.size):
            width, height = (max(1, round(length * self.side / max(image.size))) for length in image.size)
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        if self.colour < 1 and image.mode == "RGB":
            image = Image.blend(image.convert("L").convert("RGB"), image, self.colour)
        if (self.contrast, self.light) != (1, 0):
            levels = np.clip(np.rint(self.contrast * np.arange(256) + self.light), 0, 255)
            image = image.point(levels.astype(int).tolist() * len(image.getbands()))
        if self.blur > 0:
            image = image.filter(ImageFilter.GaussianBlur(self.blur))
        if self.noise > 0:
            image = _noisy(image, self.noise, drawn)
        return image if self.quality == WHOLE else _compressed(image, self.quality)

    @classmethod
    def known(cls, source: Any) -> Look | None:
        """What the source of a problem says was done to its labelled photographs; None if they are as they were.

        Raises:
            PrenError: If the record is damaged.
        """
        found = source.get(LOOK) if isinstance(source, dict) else None
        try:
            return None if found is None else cls.model_validate(found)
        except ValidationError as error:
            raise PrenError("damaged", f"The record of the run is damaged: {reason(error)}.") from error

    def done(self) -> str:
        """What is done to a photograph, for people."""
        each = [
            (self.side is not None and self.side < LARGEST, f"resized to {self.side} pixels"),
            (self.colour < 1, "made grey" if self.colour == 0 else f"left {100 * self.colour:.0f} % of their colour"),
            (self.light < 0 and self.contrast == 1, "darkened"),
            (self.light > 0 and self.contrast == 1, "brightened"),
            (self.contrast < 1, f"left {100 * self.contrast:.0f} % of their contrast"),
            (self.blur > 0, f"blurred (radius {self.blur:.1f})"),
            (self.noise > 0, f"given noise ({self.noise:.0f} levels)"),
            (self.quality < WHOLE, f"compressed (JPEG {self.quality})"),
        ]
        return ", ".join(what for is_done, what in each if is_done)

    def sentence(self) -> str:
        """What was done to the labelled photographs, and why."""
        return (
            "The pool looks as if another camera had made it. To be like it, the labelled photographs were "
            f"{self.done()} (--no-alike leaves them as they are)."
        )


class Altered(Preprocessing):
    """The preprocessing of photographs that get another look first."""

    look: Look

    def __call__(self, image: Image.Image) -> Levels:
        """As `Preprocessing`."""
        return super().__call__(self.look(image))


class Sample(NamedTuple):
    """Some photographs in memory.

    Attributes:
        images: Of `LARGEST` pixels or less.
        places: (n,) of those that can be read, in what they are a sample of.
        signs: (n, 7): see `signs`.
        sides: (n,) how many pixels the longer side of each file has.
        qualities: (n,) of JPEG, `WHOLE` for other files.
    """

    images: Sequence[Image.Image]
    places: NDArray[np.int64]
    signs: NDArray[np.float64]
    sides: NDArray[np.int64]
    qualities: NDArray[np.int64]

    @classmethod
    def of(cls, files: ImageFiles, places: NDArray[np.int64]) -> Sample:
        """Read some files; without those that cannot be read."""
        found = []
        with without_warnings():
            for place in places.tolist():
                with suppress(PrenError):
                    content, path = files.content(place), files.path(place) or Path()
                    found.append((shrunk(content, path, LARGEST), place, *quality_of_file(content, path)))
        images = [image for image, *_ in found]
        rows = np.array([row for _, *row in found], dtype=np.int64).reshape(-1, 3)
        return cls(images, rows[:, 0], signs(images), rows[:, 1], rows[:, 2])


def signs(images: Sequence[Image.Image], look: Look | None = None) -> NDArray[np.float64]:
    """What n photographs look like, altered or as they are.

    Returns:
        (n, 7): how colourful they are, their mean level, their standard deviation, and the logarithm of their power in
        four bands of frequencies, the highest last.
    """
    return np.array([_signs(SQUARE(image if look is None else look(image))) for image in images]).reshape(
        len(images), 7
    )


def _signs(levels: Levels) -> list[float]:
    grey = np.tensordot(LIGHT, levels, 1)
    colour = np.abs(levels - grey).mean()
    power = np.abs(np.fft.rfft2((grey - grey.mean()) * _WINDOW)) ** 2 / SIDE**2
    return [
        float(colour),
        float(grey.mean()),
        float(grey.std()),
        *(float(np.log(power[b].mean() + FAINT)) for b in _IN),
    ]


_WINDOW = np.outer(np.hanning(SIDE), np.hanning(SIDE))  # or the edges would look sharp
_CYCLES = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE))
_IN = [(low <= _CYCLES) & (high > _CYCLES) for low, high in pairwise(BANDS)]


def _noisy(image: Image.Image, noise: float, rng: np.random.Generator) -> Image.Image:
    """An image with the same noise in all channels, as light has it."""
    levels = np.asarray(image).astype(np.float32)
    grain = noise * rng.standard_normal((image.height, image.width), dtype=np.float32)
    levels += grain if levels.ndim == 2 else grain[:, :, None]
    return Image.fromarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8))


def _compressed(image: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file).convert(image.mode)
