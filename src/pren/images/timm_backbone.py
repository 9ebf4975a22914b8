"""timm's networks as backbones."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.images.precision import Precision, check_bfloat16
from pren.images.preprocessing import Geometry, Preprocessing
from pren.images.torchvision_operators import import_timm
from pren.images.weights import load_weights, package_of


class TimmModel:
    """A model of timm's: what follows a dot in its name says which of its trained weights, if it has them."""

    trained = True

    def __init__(self, name: str) -> None:
        timm = import_timm()
        try:
            self._config = timm.get_pretrained_cfg(name, allow_unregistered=False)
        except RuntimeError as error:
            base = name.partition(".")[0]
            tags = ", ".join(timm.list_models(f"{base}.*", pretrained=True)) or base
            raise PrenError(
                "weights-unknown", f"Backbone {base} has no weights {name!r}: choose one of {tags}."
            ) from error
        _, height, width = self._config.input_size
        source = "weights of the extra 'photos'" if package_of(name) else "weights from the hub"
        self.summary = f"{height} x {width} pixels, {source}"
        self.name = name

    def create(self, channels: int, precision: Precision, train_statistics: bool) -> nn.Module:
        """See `TimmBackbone`."""
        own = self._config.input_size[0]
        if channels != own:
            raise PrenError("backbone-input", f"Backbone {self.name!r} takes images of {own} channels, not {channels}.")
        model = import_timm().create_model(self.name, pretrained=False, num_classes=0)
        return TimmBackbone(model, self.preprocessing("random"), precision, train_statistics)

    def preprocessing(self, weights: str | None = None, geometry: Geometry = "whole") -> Preprocessing:
        """What image files are brought to: as timm says, and with the normalisation that its weights want."""
        config, package = self._config, package_of(self.name, weights)
        return Preprocessing(
            sample_shape=config.input_size,
            interpolation=config.interpolation,
            geometry=geometry,
            crop_pct=config.crop_pct,
            crop_mode=config.crop_mode,
            mean=package.mean if package else config.mean,
            std=package.std if package else config.std,
        )

    def give_weights(self, network: nn.Module, weights: str | None = None) -> None:
        """Give a network that `create` built weights (see `load_weights`) and their normalisation."""
        network = cast(TimmBackbone, network)
        load_weights(network.model, self.name, weights)
        network.normalise_as(self.preprocessing(weights))


class TimmBackbone(nn.Module):
    """A timm network without its classifier, with the normalisation that it was trained with.

    Args:
        model: Built with ``num_classes=0``.
        wanted: Says how images are normalised.
        precision: What convolutions compute in; weights, and the features, are float32 in any case.
        train_statistics: Whether BatchNorm goes by each batch while training, and learns from it. If not, it keeps the
            statistics it came with: an image's features do not depend on its batch then, so that several processes, or
            a batch in pieces, compute what one would.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: nn.Module, wanted: Preprocessing, precision: Precision, train_statistics: bool) -> None:
        super().__init__()
        self.model = model
        self.precision = precision
        self.train_statistics = train_statistics
        self.num_features = int(cast(int, getattr(model, "head_hidden_size", None) or model.num_features))
        self.normalise_as(wanted)

    def normalise_as(self, wanted: Preprocessing) -> None:
        """Take the mean and the standard deviation of each channel."""
        self.register_buffer("mean", torch.tensor(wanted.mean).reshape(-1, 1, 1))
        self.register_buffer("std", torch.tensor(wanted.std).reshape(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Turn (N, C, H, W) from 0 to 1 into (N, num_features)."""
        return self.through(self.normalised(images))

    def normalised(self, images: Tensor) -> Tensor:
        """Images as the model takes them."""
        return ((images - self.mean) / self.std).contiguous(memory_format=torch.channels_last)

    def through(self, x: Tensor) -> Tensor:
        """What the model makes of that."""
        half = self.precision == "bfloat16"
        if half and x.device.type == "cpu":
            check_bfloat16()
        with torch.autocast(x.device.type, torch.bfloat16, enabled=half):
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
