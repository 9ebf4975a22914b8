"""Backbones that are not timm's: ours, and those that other packages register."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from pren.foundation.errors import PrenError
from pren.foundation.registry import Registry
from pren.images.precision import Precision
from pren.images.preprocessing import Geometry, Preprocessing

PLUS = "+"  # between the names of backbones that are used side by side
Build = Callable[[int], nn.Module]
Load = Callable[[nn.Module], None]


@dataclass(frozen=True, eq=False)
class RegisteredBackbone:
    """What `register_backbone` was told. Precision and statistics are the network's own affair."""

    name: str
    build: Build
    wanted: Preprocessing
    summary: str
    load: Load | None = None

    @property
    def trained(self) -> bool:
        """Whether it has trained weights. One without makes no sense if it is frozen."""
        return self.load is not None

    def create(self, channels: int, precision: Precision, train_statistics: bool) -> nn.Module:
        """The network with random weights."""
        return self.build(channels)

    def preprocessing(self, weights: str | None = None, geometry: Geometry = "whole") -> Preprocessing:
        """What image files are brought to for it."""
        return self.wanted.model_copy(update={"geometry": geometry})

    def give_weights(self, network: nn.Module, weights: str | None = None) -> None:
        """Give a network that `create` built its trained weights, if there are any."""
        if weights is not None:
            raise PrenError("option-conflict", f"Backbone {self.name} takes no weights: leave them out.")
        if self.load is not None:
            self.load(network)


BACKBONES: Registry[RegisteredBackbone] = Registry("backbone")


def register_backbone(
    name: str, build: Build, preprocessing: Preprocessing, summary: str, load: Load | None = None
) -> None:
    """Add a backbone. It can be used by its name then, wherever timm's can.

    Args:
        name: Its name. It wins over a model of timm's.
        build: Takes C and returns a network (N, C, H, W) -> (N, D), whose attribute ``num_features`` is D. Images are
            from 0 to 1: it normalises them itself. Initial weights come from torch's generator, which is seeded before.
            In training it must draw nothing at random (no dropout), so that a resumed run ends as any other.
        preprocessing: What image files are brought to, such as ``Preprocessing(sample_shape=(3, 64, 64))``.
        summary: One line for ``pren list backbones``.
        load: Gives such a network its trained weights, if there are any.

    Raises:
        PrenError: If the name is taken, or is none.
    """
    if PLUS in name:
        raise PrenError(
            "backbone-name", f"{name!r} cannot be the name of a backbone: {PLUS} stands between the names of several."
        )
    BACKBONES.add(name, RegisteredBackbone(name, build, preprocessing, summary, load))
