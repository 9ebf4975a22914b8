"""timm's networks cut before a stage: a front that stays frozen, and a tail that is a backbone of its own."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.images.finetune.stages import Front, Stage, find_stage, list_stages, tail_of
from pren.images.precision import Precision
from pren.images.preprocessing import Geometry, Preprocessing
from pren.images.timm_backbone import TimmBackbone, TimmModel
from pren.images.weights import RANDOM

AT = "@"  # between the name of a network and that of the stage that its tail begins with


def tail_name(network: str, stage: str) -> str:
    """What the tail of a network is called."""
    return f"{network}{AT}{stage}"


def front_of(name: str, network: nn.Module, stage: str, sample_shape: tuple[int, ...]) -> tuple[nn.Module, Stage]:
    """The front of a backbone with weights, images (N, C, H, W) from 0 to 1 -> (N, *shape of the stage).

    Args:
        name: What it is called.
        network: Of timm's.
        stage: Its name, or how many stages there are from it to the end.
        sample_shape: (C, H, W).

    Raises:
        PrenError: If it cannot be cut there.
    """
    if not isinstance(network, TimmBackbone) or not name.partition(".")[0].isidentifier():  # such as clip:...
        raise PrenError(
            "stages-unknown", f"{name} cannot be trained from a stage on, only networks of timm's can: train all of it."
        )
    found = find_stage(network.model, stage, _picture(sample_shape))
    return _Front(network, found.name), found


def give_tail(network: nn.Module, tail: dict[str, Tensor]) -> None:
    """Give a network of timm's the weights of a tail of its own; a `PrenError` if it has no such tail."""
    prefix = "model."  # what a backbone calls the network
    weights = {name.removeprefix(prefix): value for name, value in tail.items() if name.startswith(prefix)}
    known = cast(TimmBackbone, network).model.state_dict()
    if not weights or any(name not in known or known[name].shape != value.shape for name, value in weights.items()):
        raise PrenError(
            "weights-other", "The weights of the last stages are not those of this backbone: fit the model again."
        )
    cast(TimmBackbone, network).model.load_state_dict({**known, **weights})


class _Front(nn.Module):
    def __init__(self, network: TimmBackbone, stage: str) -> None:
        super().__init__()
        self.network = network
        self.front = Front(network.model, stage)

    def forward(self, images: Tensor) -> Tensor:
        return cast(Tensor, self.front(self.network.normalised(images)))


def stages_of(name: str) -> list[Stage]:
    """Where a backbone can be cut, and what would be kept of an image.

    Raises:
        PrenError: If there is no such backbone.
    """
    model = TimmModel(name)
    shape = model.preprocessing().sample_shape
    with torch.random.fork_rng(devices=[]):
        network = cast(TimmBackbone, model.create(shape[0], "float32", False))
    return list_stages(network.eval().model, _picture(shape))


class TimmTail:
    """The rest of a network of timm's from a stage on, ``NETWORK@STAGE``: a backbone of what goes into that stage."""

    trained = True

    def __init__(self, name: str) -> None:
        whole, _, self._stage = name.partition(AT)
        self.name = name
        self._whole = TimmModel(whole)
        self.summary = f"{whole} from {self._stage} on"

    def create(self, channels: int, precision: Precision, train_statistics: bool) -> nn.Module:
        """Built from a whole network with random weights."""
        shape = self._whole.preprocessing().sample_shape
        whole = cast(TimmBackbone, self._whole.create(shape[0], precision, train_statistics)).eval()
        tail = tail_of(whole.model, self._stage, _picture(shape))
        return TailBackbone(tail, self._whole.preprocessing("random"), precision, train_statistics)

    def preprocessing(self, weights: str | None = None, geometry: Geometry = "whole") -> Preprocessing:
        """What image files are brought to before the front."""
        return self._whole.preprocessing(weights, geometry)

    def give_weights(self, network: nn.Module, weights: str | None = None) -> None:
        """Give a tail its part of the whole network's weights; "random" ones it has."""
        if weights == RANDOM:
            return
        channels = self._whole.preprocessing().sample_shape[0]
        with torch.random.fork_rng(devices=[]):
            whole = cast(TimmBackbone, self._whole.create(channels, "float32", False))
        self._whole.give_weights(whole, weights)
        tail = cast(TailBackbone, network).model
        known = whole.model.state_dict()
        tail.load_state_dict({name: known[name] for name in tail.state_dict()})


class TailBackbone(TimmBackbone):
    """A tail as a backbone: the front has normalised the images."""

    def forward(self, images: Tensor) -> Tensor:
        """Turn what goes into the stage (N, ...) into (N, num_features)."""
        return self.through(images)


def _picture(sample_shape: tuple[int, ...]) -> Tensor:
    """An image of many values to try a network on, without chance."""
    count = int(torch.Size(sample_shape).numel())
    return torch.arange(count, dtype=torch.float32).mul(0.7).sin().mul(2).reshape(1, *sample_shape)
