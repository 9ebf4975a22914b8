"""Backbones by name: what turns an input into the feature vector that the heads read."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import cast

import torch
from torch import nn

from pren.errors import PrenError
from pren.seeds import stream
from pren.vision.precision import Precision
from pren.vision.preprocessing import Geometry, Preprocessing
from pren.vision.registered import BACKBONES, Backbone
from pren.vision.small_cnn import SMALL_CNN
from pren.vision.timm_backbone import TimmModel
from pren.vision.torchvision_operators import import_timm
from pren.vision.weights import PACKAGES, installed

DEFAULT = "resnet34"  # the paper's


def list_backbones(pattern: str = "*") -> list[str]:
    """Return the names that match a pattern such as ``"resnet*"``, sorted: all but timm's without trained weights."""
    names = {*BACKBONES, *PACKAGES, *import_timm().list_models(pretrained=True)}
    # timm's names go on after a dot to say which of their weights: "resnet34" means all of those.
    return sorted(name for name in names if fnmatchcase(name, pattern) or fnmatchcase(name.split(".")[0], pattern))


def find_backbone(name: str) -> Backbone:
    """What a name stands for.

    Raises:
        PrenError: With the nearest names if there is no such backbone, or no such weights of it.
    """
    if name in BACKBONES:
        return BACKBONES[name]
    timm = import_timm()
    base = name.partition(".")[0]  # what follows says which of its trained weights
    # Names such as "hf-hub:..." would make timm read a model from elsewhere.
    if base.isidentifier() and timm.is_model(base):
        return TimmModel(name)
    here = get_close_matches(name, [*BACKBONES, *installed()])
    near = [*here, *get_close_matches(name, set(timm.list_models()) - {*here})][:3]
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise PrenError(f"There is no backbone {name!r}. {hint}See 'pren list backbones'.")


def describe_backbone(name: str) -> str:
    """One line for people: what it is, and where its weights come from."""
    return find_backbone(name).summary


def check_backbone(name: str) -> None:
    """Raise a `PrenError` if there is no such backbone; see `find_backbone`."""
    find_backbone(name)


def create_backbone(
    name: str | None,
    sample_shape: tuple[int, ...],
    seed: int,
    precision: Precision = "float32",
    train_statistics: bool = True,
) -> tuple[nn.Module, int]:
    """Build a backbone for inputs of one shape; `give_weights` turns it into a trained one.

    Args:
        name: One of `list_backbones`, or None for features, which go through as they are.
        sample_shape: (D,) for features, (C, H, W) for images.
        seed: Where the initial weights come from; torch's global generator is left as it was.
        precision: See `TimmBackbone`.
        train_statistics: See `TimmBackbone`.

    Returns:
        The backbone, (N, *sample_shape) -> (N, D), and D.

    Raises:
        PrenError: If there is no such backbone, or it does not take such inputs.
    """
    backbone = None if name is None else find_backbone(name)
    if len(sample_shape) not in (1, 3):
        raise PrenError(f"Inputs must be features (D,) or images (C, H, W), not {sample_shape}.")
    if len(sample_shape) == 1:
        if backbone is not None:
            raise PrenError(
                f"Backbone {name!r} takes images, but the inputs are features {sample_shape}: leave the backbone out, "
                "or load photographs (images=True)."
            )
        return nn.Identity(), sample_shape[0]
    if backbone is None:
        raise PrenError(
            f"The inputs are images {sample_shape}: choose a backbone, such as {DEFAULT} for photographs or "
            f"{SMALL_CNN} for small images."
        )
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: that would seed the GPUs' generators too, and nobody would put those back.
        torch.default_generator.manual_seed(int(stream(seed, "backbone").integers(2**63)))
        network = backbone.create(sample_shape[0], precision, train_statistics)
    return network, cast(int, network.num_features)


def preprocessing_of(name: str, weights: str | None = None, geometry: Geometry = "whole") -> Preprocessing:
    """What image files are brought to for a backbone: its own size, interpolation and normalisation.

    Args:
        name: The backbone.
        weights: As for `give_weights`.
        geometry: "whole" or "timm"; see `Preprocessing`.
    """
    return find_backbone(name).preprocessing(weights, geometry)


def give_weights(backbone: nn.Module, name: str | None, weights: str | None) -> None:
    """Give a backbone from `create_backbone` the weights, and the normalisation, that it starts from.

    Args:
        backbone: The network.
        name: What it was created as.
        weights: None for trained ones (from an installed package, or the hub), the path of a file, or "random". One
            that has no trained weights starts from its initial ones.

    Raises:
        PrenError: If they cannot be had.
    """
    if name is not None:
        find_backbone(name).give_weights(backbone, weights)
    elif weights is not None:
        raise PrenError("Features take no weights: leave them out.")


def check_takes(backbone: nn.Module, name: str | None, sample_shape: tuple[int, ...]) -> None:
    """Refuse inputs that a backbone cannot take, before anything is computed with it.

    Raises:
        PrenError: Saying what it wants.
    """
    if name is None:
        return
    was_training = backbone.training
    device = next((value.device for value in backbone.state_dict().values()), None)
    try:
        with torch.inference_mode():
            backbone.eval()(torch.zeros(1, *sample_shape, device=device))
    except (RuntimeError, AssertionError, ValueError) as error:
        own = preprocessing_of(name).sample_shape
        raise PrenError(f"Backbone {name!r} does not take images {sample_shape}, but {own} ({error}).") from error
    finally:
        backbone.train(was_training)
