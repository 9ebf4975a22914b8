"""A network of timm's as a backbone: levels from 0 to 1 in, one feature vector per image out."""

from __future__ import annotations

from typing import Literal, cast

import torch
from torch import Tensor, nn

from pren.vision.precision import check_bfloat16

Precision = Literal["float32", "bfloat16"]


class TimmBackbone(nn.Module):
    """A timm network without its classifier, with the normalisation that it was trained with.

    Args:
        model: Built with ``num_classes=0``.
        mean: Of each channel.
        std: Of each channel.
        precision: What convolutions compute in; weights, and the features, are float32 in any case.
        train_statistics: Whether BatchNorm goes by each batch while training, and learns from it. If not, it keeps the
            statistics it came with: an image's features do not depend on its batch then, so that several processes, or
            a batch in pieces, compute what one would.

    Attributes:
        num_features: The length of a feature vector.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        model: nn.Module,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        precision: Precision = "float32",
        train_statistics: bool = True,
    ) -> None:
        super().__init__()
        self.model = model
        self.precision = precision
        self.train_statistics = train_statistics
        self.num_features = int(cast(int, getattr(model, "head_hidden_size", None) or model.num_features))
        self.register_buffer("mean", torch.tensor(mean).reshape(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).reshape(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Turn (N, C, H, W) from 0 to 1 into (N, num_features)."""
        half = self.precision == "bfloat16"
        if half and images.device.type == "cpu":
            check_bfloat16()
        x = ((images - self.mean) / self.std).contiguous(memory_format=torch.channels_last)
        with torch.autocast(images.device.type, torch.bfloat16, enabled=half):
            features = self.model(x)
        return cast(Tensor, features.float())

    def train(self, mode: bool = True) -> TimmBackbone:
        """Switch to training: BatchNorm if it is to learn, and nothing else.

        Some of timm's networks drop activations while they train. Those would come from torch's own generator, so that
        a run that is resumed would not be what it was.
        """
        super().train(mode)
        self.model.eval()
        for module in self.model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.train(mode and self.train_statistics)
        return self
