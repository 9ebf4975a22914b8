"""Photographs that are decoded once and kept in memory, for training that reads each of them many times."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pren.foundation.errors import PrenError
from pren.images.files import ImageFiles
from pren.problem.inputs import Inputs

KEPT = 2 << 30  # bytes: 14,000 photographs of 224 x 224 pixels


class DecodedImages(Inputs):
    """Image files whose levels are kept when they are first read."""

    def __init__(self, files: ImageFiles) -> None:
        self._files = files
        self._levels = torch.empty((len(files), *files.sample_shape), dtype=torch.uint8)  # takes memory when written
        self._known = np.zeros(len(files), dtype=bool)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(C, H, W)."""
        return self._files.sample_shape

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        """Return (n, C, H, W) float32 from 0 to 1."""
        new = np.unique(indices[~self._known[indices]])
        if len(new):
            levels, errors = self._files.decoded(new)
            for error in filter(None, errors):
                raise PrenError("input-unreadable", error)
            self._levels[torch.from_numpy(new)] = levels
            self._known[new] = True
        return self._levels[torch.from_numpy(indices)].float().div_(255)

    def digest(self) -> bytes:
        """The files' hash."""
        return self._files.digest()


def decoded_once(inputs: Inputs) -> Inputs:
    """Image files as `DecodedImages` if these take at most `KEPT` bytes; other inputs as they are."""
    if isinstance(inputs, ImageFiles) and len(inputs) * math.prod(inputs.sample_shape) <= KEPT:
        return DecodedImages(inputs)
    return inputs
