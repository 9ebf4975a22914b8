"""Backbones that do not come from timm: our own, and those that other packages register."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from pren.foundation.errors import PrenError
from pren.foundation.registry import Registry
from pren.images.precision import Precision
from pren.images.preprocessing import Geometry, Preprocessing

PLUS = "+"  # joins the names of backbones side by side
Build = Callable[[int], nn.Module]
Load = Callable[[nn.Module], None]


@dataclass(frozen=True, eq=False)
class RegisteredBackbone:
    """A backbone from `register_backbone`. Its network handles precision and statistics itself."""

    name: str
    build: Build
    wanted: Preprocessing
    summary: str
    load: Load | None = None

    @property
    def trained(self) -> bool:
        """Whether it has trained weights; without them it cannot be frozen."""
        return self.load is not None

    def create(self, channels: int, precision: Precision, train_statistics: bool) -> nn.Module:
        """The network with random weights."""
        return self.build(channels)

    def preprocessing(self, weights: str | None = None, geometry: Geometry = "whole") -> Preprocessing:
        """How image files are prepared for it."""
        return self.wanted.model_copy(update={"geometry": geometry})

    def give_weights(self, network: nn.Module, weights: str | None = None) -> None:
        """Load trained weights, if there are any, into a network of `create`."""
        if weights is not None:
            raise PrenError("option-conflict", f"Backbone {self.name} takes no weights: leave out --weights.")
        if self.load is not None:
            self.load(network)


BACKBONES: Registry[RegisteredBackbone] = Registry("backbone")


def register_backbone(
    name: str, build: Build, preprocessing: Preprocessing, summary: str, load: Load | None = None
) -> None:
    """Add a backbone, to be used by its name like those of timm.

    Args:
        name: Its name. It takes precedence over a timm model of the same name.
        build: Takes C and returns a network (N, C, H, W) -> (N, D), whose attribute ``num_features`` is D. Images are
            from 0 to 1: it normalises them itself. Initial weights come from torch's generator, which is seeded before.
            Training must not be random (no dropout), so that a resumed run has the same result.
        preprocessing: How image files are prepared, such as ``Preprocessing(sample_shape=(3, 64, 64))``.
        summary: One line for ``pren list backbones``.
        load: Loads trained weights into such a network, if there are any.

    Raises:
        PrenError: If the name is taken or not valid.
    """
    if PLUS in name:
        raise PrenError("backbone-name", f"The name of a backbone must not contain {PLUS}: rename {name!r}.")
    BACKBONES.add(name, RegisteredBackbone(name, build, preprocessing, summary, load))
