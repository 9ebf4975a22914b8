"""Backbones by name: networks that turn an image into a feature vector."""

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

DEFAULT = "resnet34"  # the backbone of the paper
Backbone = RegisteredBackbone | TimmModel | ClipBackbone | TimmTail


def list_backbones(pattern: str = "*") -> list[str]:
    """The names that match a pattern such as ``"resnet*"``, sorted; of timm only models with trained weights."""
    names = {*BACKBONES, *PACKAGES, *list_clip(), *import_timm().list_models(pretrained=True)}
    # In timm a tag after a dot names the weights: "resnet34" means all of them.
    return sorted(name for name in names if fnmatchcase(name, pattern) or fnmatchcase(name.split(".")[0], pattern))


def split_names(name: str) -> list[str]:
    """The names in ``a+b``, backbones side by side, or the single name; `PrenError` if one is named twice."""
    names = name.split(PLUS)
    for each in names:
        if names.count(each) > 1:
            raise PrenError("backbone-twice", f"{name} names {each!r} twice: name each backbone once.")
    return names


def find_backbone(name: str, size: int | None = None) -> Backbone:
    """The backbone of a name; `PrenError` for several names, or with the closest names for an unknown one.

    `size` is the side of its images in pixels, for a network of timm; None for the usual one.
    """
    if PLUS in name:
        raise PrenError("backbone-several", f"{name}: several backbones must be frozen. Add --frozen, or name one.")
    if name in BACKBONES or name.startswith(PREFIX):
        other: Backbone = BACKBONES[name] if name in BACKBONES else ClipBackbone(name)
        if size not in (None, other.preprocessing().sample_shape[-1]):
            raise PrenError("backbone-input", f"Backbone {name!r} takes images of one size only: leave out --size.")
        return other
    timm = import_timm()
    base = name.partition(AT)[0].partition(".")[0]  # without the tag of its weights
    # A name such as "hf-hub:..." would make timm download a model.
    if base.isidentifier() and timm.is_model(base):
        return TimmTail(name) if AT in name else TimmModel(name, size)
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
    size: int | None = None,
) -> tuple[nn.Module, int]:
    """Build a backbone with random weights for inputs of one shape.

    Args:
        name: One of `list_backbones`, or None for features, which stay as they are.
        sample_shape: (D,) for features, (C, H, W) for images.
        seed: For the weights; torch's global generator does not change.
        precision: See `TimmBackbone`.
        train_statistics: See `TimmBackbone`.
        size: See `find_backbone`.

    Returns:
        The backbone, (N, *sample_shape) -> (N, D), and D.

    Raises:
        PrenError: If there is no such backbone, or it does not accept such inputs.
    """
    backbone = None if name is None else find_backbone(name, size)
    if len(sample_shape) == 1:
        if backbone is not None:
            message = f"Backbone {name!r} takes images, not features {sample_shape}: leave it out, or load photographs."
            raise PrenError("backbone-input", message)
        return nn.Identity(), sample_shape[0]
    if backbone is None:
        choice = f"{DEFAULT} for photographs or {SMALL_CNN} for small images"
        raise PrenError("backbone-input", f"The inputs are images {sample_shape}: choose a backbone, such as {choice}.")
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would also seed the GPUs, which fork_rng does not restore here.
        torch.default_generator.manual_seed(int(stream(seed, "backbone").integers(2**63)))
        network = backbone.create(sample_shape[0], precision, train_statistics)
    return network, cast(int, network.num_features)


def check_takes(network: nn.Module, name: str | None, sample_shape: tuple[int, ...]) -> None:
    """Raise a `PrenError` if a backbone does not accept inputs of this shape."""
    if name is None:
        return
    was_training = network.training
    device = next((value.device for value in network.state_dict().values()), None)
    try:
        with torch.inference_mode():
            network.eval()(torch.zeros(1, *sample_shape, device=device))
    except (RuntimeError, AssertionError, ValueError) as error:
        own = find_backbone(name).preprocessing().sample_shape
        message = f"Backbone {name!r} takes images {own}, not {sample_shape} ({error})."
        raise PrenError("backbone-input", message) from error
    finally:
        network.train(was_training)
