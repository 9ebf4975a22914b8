"""Transformers as frozen backbones: their features, and their positions for other sizes of images.

A frozen transformer's features are its class token and the mean of its patches' tokens, which tells what the class
token leaves out: labels are better by it on CUB's validation folds (docs/results/backbones.md).
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from pren.images.torchvision_operators import import_timm

Tokens = Literal["class", "class and mean"]
BOTH: Tokens = "class and mean"


class ClassAndMean(nn.Module):
    """A transformer's class token, and the mean of its patches' tokens."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network  # a TimmBackbone

    def forward(self, images: Tensor) -> Tensor:
        """(n, C, H, W) from 0 to 1 -> (n, 2 D)."""
        network = cast(Any, self.network)
        tokens = network.model.forward_features(network.normalised(images))
        return torch.cat([tokens[:, 0], tokens[:, network.model.num_prefix_tokens :].mean(dim=1)], dim=1)


def has_class_token(network: nn.Module) -> bool:
    """Whether a network is a transformer of timm whose features are its class token."""
    import_timm()
    from timm.models.vision_transformer import VisionTransformer

    model = getattr(network, "model", None)
    return isinstance(model, VisionTransformer) and model.global_pool == "token" and model.cls_token is not None


def fit_positions(model: nn.Module, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights with the positions of a transformer's patches resampled for the size of its images."""
    own, given = model.state_dict().get("pos_embed"), tensors.get("pos_embed")
    if own is None or given is None or given.ndim != 3 or given.shape == own.shape or given.shape[2] != own.shape[2]:
        return tensors
    known = cast(Any, model)
    import_timm()
    before = 0 if known.no_embed_class else known.num_prefix_tokens
    if math.isqrt(given.shape[1] - before) ** 2 != given.shape[1] - before:  # patches of no square: another network
        return tensors
    size = list(known.patch_embed.grid_size)
    resample = import_module("timm.layers").resample_abs_pos_embed
    return {**tensors, "pos_embed": resample(given, new_size=size, num_prefix_tokens=before)}
