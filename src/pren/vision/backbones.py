"""Backbones by name: what turns an input into the feature vector that the heads read."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

import torch
from torch import nn

from pren.errors import PrenError, suggest
from pren.seeds import stream
from pren.vision.small_cnn import MIN_SIDE, SmallCNN, small_cnn

BACKBONES: dict[str, Callable[[int], SmallCNN]] = {"small-cnn": small_cnn}


def list_backbones(pattern: str = "*") -> list[str]:
    """Return the names that match a pattern such as ``"small*"``, sorted."""
    return sorted(name for name in BACKBONES if fnmatchcase(name, pattern))


def create_backbone(name: str | None, sample_shape: tuple[int, ...], seed: int) -> tuple[nn.Module, int]:
    """Build a backbone for inputs of one shape.

    Args:
        name: One of `list_backbones`, or None for features, which go through as they are.
        sample_shape: (D,) for features, (C, H, W) for images.
        seed: Where the initial weights come from; torch's global generator is left as it was.

    Returns:
        The backbone, (N, *sample_shape) -> (N, D), and D.

    Raises:
        PrenError: If there is no such backbone, or it does not take such inputs.
    """
    if name is not None and name not in BACKBONES:
        raise PrenError(f"There is no backbone {name!r}. {suggest(name, BACKBONES)} Features take None.")
    if len(sample_shape) == 1:
        if name is not None:
            raise PrenError(f"Backbone {name!r} takes images, but the inputs are features {sample_shape}: choose None.")
        return nn.Identity(), sample_shape[0]
    if len(sample_shape) != 3:
        raise PrenError(f"Inputs must be features (D,) or images (C, H, W), but have shape {sample_shape}.")
    if name is None:
        raise PrenError(
            f"The inputs are images {sample_shape}: choose a backbone, one of {', '.join(list_backbones())}."
        )
    channels, height, width = sample_shape
    if min(height, width) < MIN_SIDE:
        raise PrenError(
            f"Backbone {name!r} needs images of at least {MIN_SIDE} x {MIN_SIDE} pixels, not {height} x {width}."
        )
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: that would seed the GPUs' generators too, and nobody would put those back.
        torch.default_generator.manual_seed(int(stream(seed, "backbone").integers(2**63)))
        network = BACKBONES[name](channels)
    return network, network.num_features
