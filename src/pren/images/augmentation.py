"""Flips and crops of training images. Off by default, as in the paper."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

Augmentation = Literal["none", "flip", "flip-crop"]
SCALES = (0.5, 1.0)  # the share of an image's area that a crop keeps
STRETCH = math.log(4 / 3)  # the largest change of the aspect ratio, as a logarithm


def augment(images: Tensor, rng: np.random.Generator, kind: Augmentation) -> Tensor:
    """Change the images (N, C, H, W) of a batch at random.

    "flip" mirrors half of them; "flip-crop" also crops each and resizes it to H x W. The number of random draws only
    depends on N.
    """
    if kind == "none":
        return images
    count = len(images)
    mirrored = torch.from_numpy(rng.random(count) < 0.5).to(images.device)
    images = torch.where(mirrored[:, None, None, None], images.flip(-1), images)
    if kind == "flip":
        return images
    # A crop is an affine map of the square [-1, 1]²: sides (w, h), and a centre that keeps it inside.
    area, ratio = rng.uniform(*SCALES, count), np.exp(rng.uniform(-STRETCH, STRETCH, count))
    w, h = np.minimum(np.sqrt(area * ratio), 1), np.minimum(np.sqrt(area / ratio), 1)
    x, y = rng.uniform(-1, 1, count) * (1 - w), rng.uniform(-1, 1, count) * (1 - h)
    theta = np.zeros((count, 2, 3))
    theta[:, 0, 0], theta[:, 0, 2], theta[:, 1, 1], theta[:, 1, 2] = w, x, h, y
    maps = torch.from_numpy(theta).to(images)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
