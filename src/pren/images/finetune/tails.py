"""Networks of timm cut before a stage: a frozen front, and a tail that is a backbone itself."""

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

AT = "@"  # between the names of a network and of the first stage of its tail


def tail_name(network: str, stage: str) -> str:
    """The name of the tail of a network."""
    return f"{network}{AT}{stage}"


def front_of(name: str, network: nn.Module, stage: str, sample_shape: tuple[int, ...]) -> tuple[nn.Module, Stage]:
    """The front of a backbone with weights, images (N, C, H, W) from 0 to 1 -> (N, *shape of the stage).

    Args:
        name: Of the backbone.
        network: A network of timm.
        stage: Its name, or its number counted from the end.
        sample_shape: (C, H, W).

    Raises:
        PrenError: If it cannot be cut there.
    """
    if not isinstance(network, TimmBackbone) or not name.partition(".")[0].isidentifier():  # such as clip:...
        raise PrenError("stages-unknown", f"Only networks of timm can be trained from a stage on: train all of {name}.")
    found = find_stage(network.model, stage, _test_image(sample_shape))
    return _Front(network, found.name), found


def give_tail(network: nn.Module, tail: dict[str, Tensor]) -> None:
    """Load the weights of a tail into its whole timm network; `PrenError` if they do not fit."""
    prefix = "model."  # of the network in a backbone
    weights = {name.removeprefix(prefix): value for name, value in tail.items() if name.startswith(prefix)}
    known = cast(TimmBackbone, network).model.state_dict()
    if not weights or any(name not in known or known[name].shape != value.shape for name, value in weights.items()):
        raise PrenError("weights-other", "The weights of the last stages do not fit this backbone: fit again.")
    cast(TimmBackbone, network).model.load_state_dict({**known, **weights})


class _Front(nn.Module):
    def __init__(self, network: TimmBackbone, stage: str) -> None:
        super().__init__()
        self.network = network
        self.front = Front(network.model, stage)

    def forward(self, images: Tensor) -> Tensor:
        return cast(Tensor, self.front(self.network.normalised(images)))


def stages_of(name: str) -> list[Stage]:
    """The stages of a backbone; `PrenError` if there is no such backbone."""
    model = TimmModel(name)
    shape = model.preprocessing().sample_shape
    with torch.random.fork_rng(devices=[]):
        network = cast(TimmBackbone, model.create(shape[0], "float32", False))
    return list_stages(network.eval().model, _test_image(shape))


class TimmTail:
    """A timm network from a stage on, ``NETWORK@STAGE``: a backbone for the inputs of that stage."""

    trained = True

    def __init__(self, name: str) -> None:
        whole, _, self._stage = name.partition(AT)
        self.name = name
        self._whole = TimmModel(whole)
        self.summary = f"{whole} from {self._stage} on"

    def create(self, channels: int, precision: Precision, train_statistics: bool) -> nn.Module:
        """The tail of a whole network with random weights."""
        shape = self._whole.preprocessing().sample_shape
        whole = cast(TimmBackbone, self._whole.create(shape[0], precision, train_statistics)).eval()
        tail = tail_of(whole.model, self._stage, _test_image(shape))
        return TailBackbone(tail, self._whole.preprocessing("random"), precision, train_statistics)

    def preprocessing(self, weights: str | None = None, geometry: Geometry = "whole") -> Preprocessing:
        """How image files are prepared for the front."""
        return self._whole.preprocessing(weights, geometry)

    def give_weights(self, network: nn.Module, weights: str | None = None) -> None:
        """Load the tail's part of the whole network's weights; "random" leaves it as it is."""
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
    """A tail as a backbone; the front has normalised the images."""

    def forward(self, images: Tensor) -> Tensor:
        """Turn inputs of the stage (N, ...) into (N, num_features)."""
        return self.through(images)


def _test_image(sample_shape: tuple[int, ...]) -> Tensor:
    """A fixed image of many values, to test a network with."""
    count = int(torch.Size(sample_shape).numel())
    return torch.arange(count, dtype=torch.float32).mul(0.7).sin().mul(2).reshape(1, *sample_shape)
