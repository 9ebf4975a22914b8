"""How an image file is prepared for a backbone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError
from torch import Tensor

from pren.foundation.errors import PrenError
from pren.images.torchvision_operators import import_timm

MODES = {1: "L", 3: "RGB"}
Geometry = Literal["whole", "timm"]
Levels = NDArray[np.uint8]


class Preprocessing(BaseModel):
    """How an image becomes numbers; saved with every model and cache.

    Attributes:
        sample_shape: (C, H, W): C is 1 (grey) or 3 (colour).
        interpolation: How pixels are resampled.
        geometry: "whole" resizes the whole image to H x W, as in the paper. "timm" resizes the shorter side and crops
            the middle, as the backbone's authors evaluate it.
        crop_pct: For "timm": the share of the resized image that is kept; above 1, the image gets a margin.
        crop_mode: For "timm": how it is cropped.
        mean: Of each channel, from 0 to 1. The backbone subtracts it.
        std: Of each channel. The backbone divides by it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    sample_shape: tuple[Literal[1, 3], PositiveInt, PositiveInt]
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
            image = image.resize((width, height), Image.Resampling[self.interpolation.upper()])
        levels: Levels = np.asarray(image).reshape(height, width, channels).transpose(2, 0, 1)
        return levels


def plain(sample_shape: tuple[int, ...]) -> Preprocessing:
    """Only resize images to a shape; `PrenError` if images cannot have it."""
    try:
        return Preprocessing.model_validate({"sample_shape": sample_shape})
    except ValidationError as error:
        message = f"Image files become (1 or 3, H, W), not {sample_shape}: give arrays instead."
        raise PrenError("inputs-shape", message) from error


@cache
def _timm_geometry(wanted: Preprocessing) -> Callable[[Image.Image], Tensor | Levels]:
    """timm's transform from an image to levels; the backbone normalises."""
    transform = import_timm().data.create_transform(
        wanted.sample_shape,
        interpolation=wanted.interpolation,
        crop_pct=wanted.crop_pct,
        crop_mode=wanted.crop_mode,
        mean=wanted.mean or (0.5,),
        std=wanted.std or (0.5,),
        use_prefetcher=True,
    )
    return cast(Callable[[Image.Image], Tensor | Levels], transform)
