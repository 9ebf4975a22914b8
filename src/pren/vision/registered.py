"""Backbones that are not timm's: ours, and those that other packages register."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import nn

from pren.errors import PrenError
from pren.registry import Registry
from pren.vision.precision import Precision
from pren.vision.preprocessing import Geometry, Preprocessing

Build = Callable[[int], nn.Module]
Load = Callable[[nn.Module], None]


class Backbone(ABC):
    """What a name stands for.

    Attributes:
        summary: One line for people.
        trained: Whether it has trained weights. One without makes no sense if it is frozen.
    """

    summary: str
    trained: bool

    @abstractmethod
    def create(self, channels: int, precision: Precision, train_statistics: bool) -> nn.Module:
        """Build the network with random weights: (N, C, H, W) from 0 to 1 -> (N, its ``num_features``)."""

    @abstractmethod
    def preprocessing(self, weights: str | None, geometry: Geometry) -> Preprocessing:
        """What image files are brought to for it."""

    @abstractmethod
    def give_weights(self, network: nn.Module, weights: str | None) -> None:
        """Give a network that `create` built the weights that it starts from."""


BACKBONES: Registry[Backbone] = Registry("backbone")


class Registered(Backbone):
    """A backbone from `register_backbone`. Precision and statistics are its own affair."""

    def __init__(self, name: str, build: Build, preprocessing: Preprocessing, summary: str, load: Load | None) -> None:
        self.name = name
        self.summary = summary
        self.trained = load is not None
        self._build = build
        self._preprocessing = preprocessing
        self._load = load

    def create(self, channels: int, precision: Precision, train_statistics: bool) -> nn.Module:
        """Call the factory."""
        return self._build(channels)

    def preprocessing(self, weights: str | None, geometry: Geometry) -> Preprocessing:
        """As registered, with the geometry that is asked for."""
        return self._preprocessing.model_copy(update={"geometry": geometry})

    def give_weights(self, network: nn.Module, weights: str | None) -> None:
        """Its own trained weights, if it has any."""
        if weights is not None:
            raise PrenError(f"Backbone {self.name} takes no weights: leave them out.")
        if self._load is not None:
            self._load(network)


def register_backbone(
    name: str,
    build: Build,
    preprocessing: Preprocessing,
    summary: str,
    load: Load | None = None,
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
        PrenError: If the name is taken.
    """
    BACKBONES.add(name, Registered(name, build, preprocessing, summary, load))
