"""Backbones by name: what turns an input into the feature vector that the heads read."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import cast

import torch
from torch import nn

from pren.foundation.errors import PrenError
from pren.foundation.seeds import stream
from pren.images.clip import PREFIX, ClipBackbone, list_clip
from pren.images.finetune.tails import AT, TimmTail
from pren.images.precision import Precision
from pren.images.registered import BACKBONES, PLUS, RegisteredBackbone
from pren.images.small_cnn import SMALL_CNN
from pren.images.timm_backbone import TimmModel
from pren.images.torchvision_operators import import_timm
from pren.images.weights import PACKAGES, package_of

DEFAULT = "resnet34"  # the paper's
Backbone = RegisteredBackbone | TimmModel | ClipBackbone | TimmTail


def list_backbones(pattern: str = "*") -> list[str]:
    """Return the names that match a pattern such as ``"resnet*"``, sorted: all but timm's without trained weights."""
    names = {*BACKBONES, *PACKAGES, *list_clip(), *import_timm().list_models(pretrained=True)}
    # timm's names go on after a dot to say which of their weights: "resnet34" means all of those.
    return sorted(name for name in names if fnmatchcase(name, pattern) or fnmatchcase(name.split(".")[0], pattern))


def split_names(name: str) -> list[str]:
    """The names of backbones that are to be used side by side, ``a+b``, or the one name.

    Raises:
        PrenError: If one stands there twice.
    """
    names = name.split(PLUS)
    for each in names:
        if names.count(each) > 1:
            raise PrenError("backbone-twice", f"{name} names {each!r} twice: its features are the same both times.")
    return names


def find_backbone(name: str) -> Backbone:
    """What a name stands for.

    Raises:
        PrenError: With the nearest names if there is no such backbone, or no such weights of it; for several names.
    """
    if PLUS in name:
        raise PrenError(
            "backbone-several",
            f"{name}: several backbones side by side stay frozen. Add --frozen, or name one to train.",
        )
    if name in BACKBONES:
        return BACKBONES[name]
    if name.startswith(PREFIX):
        return ClipBackbone(name)
    timm = import_timm()
    base = name.partition(AT)[0].partition(".")[0]  # what follows says which of its trained weights
    # Names such as "hf-hub:..." would make timm read a model from elsewhere.
    if base.isidentifier() and timm.is_model(base):
        return TimmTail(name) if AT in name else TimmModel(name)
    here = get_close_matches(name, [*BACKBONES, *filter(package_of, PACKAGES)])
    near = [*here, *get_close_matches(name, set(timm.list_models()) - {*here})][:3]
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise PrenError("backbone-unknown", f"There is no backbone {name!r}. {hint}See 'pren list backbones'.")


def create_backbone(
    name: str | None,
    sample_shape: tuple[int, ...],
    seed: int,
    precision: Precision = "float32",
    train_statistics: bool = True,
) -> tuple[nn.Module, int]:
    """Build a backbone with random weights for inputs of one shape.

    Args:
        name: One of `list_backbones`, or None for features, which go through as they are.
        sample_shape: (D,) for features, (C, H, W) for images.
        seed: Where the weights come from; torch's global generator is left as it was.
        precision: See `TimmBackbone`.
        train_statistics: See `TimmBackbone`.

    Returns:
        The backbone, (N, *sample_shape) -> (N, D), and D.

    Raises:
        PrenError: If there is no such backbone, or it does not take such inputs.
    """
    backbone = None if name is None else find_backbone(name)
    if len(sample_shape) == 1:
        if backbone is not None:
            raise PrenError(
                "backbone-input",
                f"Backbone {name!r} takes images, not features {sample_shape}: leave it out, or load images.",
            )
        return nn.Identity(), sample_shape[0]
    if backbone is None:
        raise PrenError(
            "backbone-input",
            f"The inputs are images {sample_shape}: choose a backbone, such as {DEFAULT} for photographs or "
            f"{SMALL_CNN} for small images.",
        )
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: that would seed the GPUs' generators too, and nobody would put those back.
        torch.default_generator.manual_seed(int(stream(seed, "backbone").integers(2**63)))
        network = backbone.create(sample_shape[0], precision, train_statistics)
    return network, cast(int, network.num_features)


def check_takes(network: nn.Module, name: str | None, sample_shape: tuple[int, ...]) -> None:
    """Raise a `PrenError` if a backbone cannot take such inputs, before anything is computed with it."""
    if name is None:
        return
    was_training = network.training
    device = next((value.device for value in network.state_dict().values()), None)
    try:
        with torch.inference_mode():
            network.eval()(torch.zeros(1, *sample_shape, device=device))
    except (RuntimeError, AssertionError, ValueError) as error:
        own = find_backbone(name).preprocessing().sample_shape
        raise PrenError(
            "backbone-input", f"Backbone {name!r} does not take images {sample_shape}, but {own} ({error})."
        ) from error
    finally:
        network.train(was_training)
