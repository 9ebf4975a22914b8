"""Networks of timm as backbones."""

from __future__ import annotations

from contextlib import nullcontext
from typing import cast

import torch
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.images.depthwise import OwnGradients
from pren.images.precision import Precision, check_bfloat16
from pren.images.preprocessing import Geometry, Preprocessing
from pren.images.torchvision_operators import import_timm
from pren.images.tried import usual_size
from pren.images.weights import first_line, load_weights, package_of


class TimmModel:
    """A model of timm; a tag after a dot in its name selects its trained weights.

    Args:
        name: Its name in timm.
        size: The side of its images in pixels; None for the usual one.
    """

    trained = True

    def __init__(self, name: str, size: int | None = None) -> None:
        timm = import_timm()
        try:
            self._config = timm.get_pretrained_cfg(name, allow_unregistered=False)
        except RuntimeError as error:
            base = name.partition(".")[0]
            tags = ", ".join(timm.list_models(f"{base}.*", pretrained=True)) or base
            message = f"Backbone {base} has no weights {name!r}: choose one of {tags}."
            raise PrenError("weights-unknown", message) from error
        own, height, width = self._config.input_size
        if (size := size or usual_size(name)) is not None:
            height = width = size
        self._shape = own, height, width
        source = "weights of the extra 'photos'" if package_of(name) else "weights from the hub"
        self.summary = f"{height} x {width} pixels, {source}"
        self.name = name

    def create(self, channels: int, precision: Precision, train_statistics: bool) -> nn.Module:
        """See `TimmBackbone`."""
        own = self._shape[0]
        if channels != own:
            raise PrenError("backbone-input", f"Backbone {self.name!r} takes images of {own} channels, not {channels}.")
        # Networks of one size only are built for it.
        sized = {"img_size": self._shape[1:]} if self._config.fixed_input_size else {}
        try:
            model = import_timm().create_model(self.name, pretrained=False, num_classes=0, **sized)
        except (AssertionError, TypeError, ValueError, RuntimeError) as error:
            message = f"Backbone {self.name!r} takes no images of {self._shape[1:]} pixels ({first_line(error)})."
            raise PrenError("backbone-input", message) from error
        return TimmBackbone(model, self.preprocessing("random"), precision, train_statistics)

    def preprocessing(self, weights: str | None = None, geometry: Geometry = "whole") -> Preprocessing:
        """timm's preprocessing, with the normalisation of the weights."""
        config, package = self._config, package_of(self.name, weights)
        return Preprocessing(
            sample_shape=self._shape,
            interpolation=config.interpolation,
            geometry=geometry,
            crop_pct=config.crop_pct,
            crop_mode=config.crop_mode,
            mean=package.mean if package else config.mean,
            std=package.std if package else config.std,
        )

    def give_weights(self, network: nn.Module, weights: str | None = None) -> None:
        """Load weights (see `load_weights`) and their normalisation into a network of `create`."""
        network = cast(TimmBackbone, network)
        load_weights(network.model, self.name, weights)
        network.normalise_as(self.preprocessing(weights))


class TimmBackbone(nn.Module):
    """A timm network without its classifier, with the normalisation of its training.

    Args:
        model: Built with ``num_classes=0``.
        wanted: How images are normalised.
        precision: Of convolutions; weights and features are always float32.
        train_statistics: Whether BatchNorm uses and learns the statistics of each training batch. If not, it keeps its
            own: then an image's features do not depend on its batch, and several processes, or a batch in pieces,
            compute the same as one.
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
        """Set the mean and the standard deviation of each channel."""
        self.register_buffer("mean", torch.tensor(wanted.mean).reshape(-1, 1, 1))
        self.register_buffer("std", torch.tensor(wanted.std).reshape(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Turn (N, C, H, W) from 0 to 1 into (N, num_features)."""
        return self.through(self.normalised(images))

    def normalised(self, images: Tensor) -> Tensor:
        """Images normalised for the model."""
        return ((images - self.mean) / self.std).contiguous(memory_format=torch.channels_last)

    def through(self, x: Tensor) -> Tensor:
        """The model's features of normalised images."""
        half, cpu = self.precision == "bfloat16", x.device.type == "cpu"
        if half and cpu:
            check_bfloat16()
        trained = half and cpu and torch.is_grad_enabled()
        with torch.autocast(x.device.type, torch.bfloat16, enabled=half), OwnGradients() if trained else nullcontext():
            features = self.model(x)
        return cast(Tensor, features.float())

    def train(self, mode: bool = True) -> TimmBackbone:
        """Switch BatchNorm to training if it learns statistics, and nothing else.

        Dropout in some timm networks would use torch's global generator, and a resumed run would differ.
        """
        super().train(mode)
        self.model.eval()
        for module in self.model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.train(mode and self.train_statistics)
        return self
