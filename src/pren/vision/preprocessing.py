"""What becomes of an image file before a backbone sees it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from pren.errors import PrenError
from pren.vision.torchvision_operators import import_timm

MODES = {1: "L", 3: "RGB"}
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
Geometry = Literal["whole", "timm"]
Levels = NDArray[np.uint8]


class Preprocessing(BaseModel):
    """How an image becomes numbers; it travels with the backbone, and with every model and cache made with it.

    Attributes:
        sample_shape: (C, H, W): C is 1 (grey) or 3 (colour).
        interpolation: How pixels are resampled.
        geometry: "whole": the whole image is squeezed to H x W, as the paper does. "timm": the shorter side is brought
            to the size and the middle cut out, as the backbone's authors evaluated it.
        crop_pct: "timm": the share of the resized image that is kept; beyond 1, it gets a margin.
        crop_mode: "timm": how it is cut.
        mean: Taken off each channel, in the backbone, where levels are from 0 to 1.
        std: Each channel is divided by.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    sample_shape: tuple[int, int, int]
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bilinear"
    geometry: Geometry = "whole"
    crop_pct: float = Field(default=1.0, gt=0, le=2)
    crop_mode: str = "center"
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def __call__(self, image: Image.Image) -> Levels:
        """Turn an image of the right mode into (C, H, W) levels from 0 to 255."""
        channels, height, width = self.sample_shape
        if self.geometry == "timm":
            return np.asarray(_timm_geometry(self)(image))
        if image.size != (width, height):
            image = image.resize((width, height), FILTERS[self.interpolation])
        levels: Levels = np.asarray(image).reshape(height, width, channels).transpose(2, 0, 1)
        return levels


def plain(sample_shape: tuple[int, ...]) -> Preprocessing:
    """No more than bringing images to a shape; for backbones that say nothing else.

    Raises:
        PrenError: If image files cannot be brought to that shape.
    """
    if len(sample_shape) != 3 or sample_shape[0] not in MODES or min(sample_shape) < 1:
        raise PrenError(
            f"Image files become (1 or 3, H, W) inputs, but inputs of shape {sample_shape} are asked for: "
            "give arrays instead."
        )
    channels, height, width = sample_shape
    return Preprocessing(sample_shape=(channels, height, width))


@cache
def _timm_geometry(wanted: Preprocessing) -> Callable[[Image.Image], Tensor | Levels]:
    """timm's own way from an image to levels; normalisation is the backbone's."""
    transform: Callable[[Image.Image], Tensor | Levels] = import_timm().data.create_transform(
        wanted.sample_shape,
        interpolation=wanted.interpolation,
        crop_pct=wanted.crop_pct,
        crop_mode=wanted.crop_mode,
        mean=wanted.mean or (0.5,),
        std=wanted.std or (0.5,),
        use_prefetcher=True,
    )
    return transform
