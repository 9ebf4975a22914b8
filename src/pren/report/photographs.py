"""Thumbnails of the pool inside the page; not too many, so that it stays a few MB."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image

from pren.images.files import ImageFiles
from pren.images.preprocessing import MODES
from pren.problem.inputs import Inputs

SIDE, SMALL_SIDE = 132, 96  # pixels; the smaller if there are many
MANY = 300
QUALITY = 74
MOST_BYTES = 3_500_000
TINY = 64  # arrays up to this size keep their pixels


@dataclass(frozen=True)
class Thumbnail:
    """A data URI and its size; `pixels` if every pixel is to be visible."""

    uri: str
    width: int
    height: int
    pixels: bool


class Photographs:
    """Makes thumbnails of the inputs of a pool.

    Args:
        inputs: The pool; None, or features, if it cannot be shown.
        expected: About how many are needed: many are smaller.

    Attributes:
        there: Whether the pool can be shown.
        shown: The number in the page.
        left_out: The number left out: unreadable, or the page is full.
    """

    def __init__(self, inputs: Inputs | None, expected: int = 0) -> None:
        shape = () if inputs is None else inputs.sample_shape
        self._inputs = inputs if len(shape) == 3 and shape[0] in MODES else None
        self._tiny = self._inputs is not None and not self._inputs.photographs and max(shape[1:]) <= TINY
        self._side = SMALL_SIDE if expected > MANY else SIDE
        self._size = shape[1:] if self._tiny else (self._side, self._side)
        self._left = MOST_BYTES
        self._uri = cache(self._make_uri)
        self.there = self._inputs is not None
        self.shown = self.left_out = 0

    def thumbnail(self, place: int) -> Thumbnail | None:
        """An input of the pool; None if it cannot be read, or the page is full."""
        uri = self._uri(place)
        if uri is None or len(uri) > self._left:
            self.left_out += 1
            return None
        self.shown += 1
        self._left -= len(uri)
        height, width = self._size
        return Thumbnail(uri, width, height, self._tiny)

    def _make_uri(self, place: int) -> str | None:
        image = self._image(place)
        if image is None:
            return None
        content = io.BytesIO()
        if self._tiny:
            image.save(content, "PNG", optimize=True)
        else:
            image.save(content, "JPEG", quality=QUALITY, optimize=True)
        kind = "png" if self._tiny else "jpeg"
        return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"

    def _image(self, place: int) -> Image.Image | None:
        if self._inputs is None:
            return None
        if isinstance(self._inputs, ImageFiles):
            return self._inputs.thumbnail(place, self._side)
        levels = (self._inputs[np.array([place])][0].clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
        image = Image.fromarray(levels[..., 0] if levels.shape[2] == 1 else levels)
        if not self._tiny:
            image.thumbnail((self._side, self._side))
        return image
