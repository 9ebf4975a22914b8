"""Backbones by name: what turns an input into the feature vector that the heads read."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, cast

import torch
from torch import nn

from pren.errors import PrenError
from pren.seeds import stream
from pren.vision.preprocessing import Geometry, Preprocessing, plain
from pren.vision.small_cnn import MIN_SIDE, SmallCNN
from pren.vision.timm_backbone import Precision, TimmBackbone
from pren.vision.torchvision_operators import import_timm
from pren.vision.weights import PACKAGES, installed, load_weights, source_of

SMALL_CNN = "small-cnn"
DEFAULT = "resnet34"  # the paper's
SMALL = (3, 64, 64)  # what image files are brought to where the backbone takes any size


def list_backbones(pattern: str = "*") -> list[str]:
    """Return the names that match a pattern such as ``"resnet*"``, sorted: our own, and timm's with trained weights."""
    names = {SMALL_CNN, *PACKAGES, *import_timm().list_models(pretrained=True)}
    # timm's names go on after a dot to say which of their weights: "resnet34" means all of those.
    return sorted(name for name in names if fnmatchcase(name, pattern) or fnmatchcase(name.split(".")[0], pattern))


def describe_backbone(name: str) -> str:
    """One line for people: the size of its images, and where its weights come from."""
    if name == SMALL_CNN:
        return "three convolutions for small images, trained from scratch"
    size = _config(name)["input_size"]
    source = "installed with pren[offline]" if source_of(name, None) == "package" else "weights from the hub"
    return f"{size[1]} x {size[2]} pixels, {source}"


def check_backbone(name: str) -> None:
    """Raise a `PrenError` with the nearest names if there is no such backbone, or no such weights of it."""
    if name == SMALL_CNN:
        return
    timm = import_timm()
    base = name.partition(".")[0]  # what follows says which of its trained weights
    # Names such as "hf-hub:..." would make timm read a model from elsewhere.
    if not base.isidentifier() or not timm.is_model(base):
        here = get_close_matches(name, [SMALL_CNN, *installed()])
        near = [*here, *get_close_matches(name, set(timm.list_models()) - {*here})][:3]
        hint = f"Did you mean {' or '.join(near)}?" if near else f"{DEFAULT} and {SMALL_CNN} are two of them."
        raise PrenError(f"There is no backbone {name!r}. {hint} See 'pren list backbones'. Features take None.")
    try:
        timm.get_pretrained_cfg(name)
    except RuntimeError as error:
        tags = ", ".join(timm.list_models(f"{base}.*", pretrained=True)) or base
        raise PrenError(f"Backbone {base} has no such weights as {name!r}: choose one of {tags}.") from error


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
    if name is not None:
        check_backbone(name)
    if len(sample_shape) == 1:
        if name is not None:
            raise PrenError(
                f"Backbone {name!r} takes images, but the inputs are features {sample_shape}: leave it out (None), or "
                "load photographs (of a benchmark with images=True)."
            )
        return nn.Identity(), sample_shape[0]
    if len(sample_shape) != 3:
        raise PrenError(f"Inputs must be features (D,) or images (C, H, W), but have shape {sample_shape}.")
    if name is None:
        raise PrenError(
            f"The inputs are images {sample_shape}: choose a backbone, such as {DEFAULT} for photographs or "
            f"{SMALL_CNN} for small images ('pren list backbones')."
        )
    channels, height, width = sample_shape
    if min(height, width) < MIN_SIDE:
        raise PrenError(
            f"Backbone {name!r} needs images of at least {MIN_SIDE} x {MIN_SIDE} pixels, not {height} x {width}."
        )
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: that would seed the GPUs' generators too, and nobody would put those back.
        torch.default_generator.manual_seed(int(stream(seed, "backbone").integers(2**63)))
        if name == SMALL_CNN:
            network: SmallCNN | TimmBackbone = SmallCNN(channels)
        else:
            network = _timm_backbone(name, channels, precision, train_statistics)
    return network, network.num_features


def preprocessing_of(name: str, weights: str | None = None, geometry: Geometry = "whole") -> Preprocessing:
    """What image files are brought to for a backbone: its own size, interpolation and normalisation.

    Args:
        name: The backbone.
        weights: As for `give_weights`.
        geometry: "whole" or "timm"; see `Preprocessing`.
    """
    check_backbone(name)
    if name == SMALL_CNN:
        return plain(SMALL)
    config = _config(name)
    mean, std = tuple(config["mean"]), tuple(config["std"])
    if source_of(name, weights) == "package":
        mean, std = (PACKAGES[name].mean,) * len(mean), (PACKAGES[name].std,) * len(std)
    return Preprocessing(
        sample_shape=config["input_size"],
        interpolation=config["interpolation"],
        geometry=geometry,
        crop_pct=config["crop_pct"] or 0.875,  # as timm takes it
        crop_mode=config["crop_mode"] or "center",
        mean=mean,
        std=std,
    )


def give_weights(backbone: nn.Module, name: str | None, weights: str | None) -> None:
    """Give a backbone from `create_backbone` the weights, and the normalisation, that it starts from.

    Args:
        backbone: The identity and `small-cnn` start from nothing.
        name: What it was created as.
        weights: None for trained ones (from an installed package, or the hub), the path of a file, or "random".

    Raises:
        PrenError: If they cannot be had.
    """
    if not isinstance(backbone, TimmBackbone) or name is None:
        if weights is not None:
            raise PrenError(f"There are no weights to give: {name or 'features'} start from nothing. Leave them out.")
        return
    load_weights(backbone.model, name, weights)
    wanted = preprocessing_of(name, weights)
    backbone.mean.copy_(torch.tensor(wanted.mean).reshape(-1, 1, 1))
    backbone.std.copy_(torch.tensor(wanted.std).reshape(-1, 1, 1))


def check_takes(backbone: nn.Module, name: str | None, sample_shape: tuple[int, ...]) -> None:
    """Refuse inputs that a backbone cannot take, before anything is computed with it.

    Raises:
        PrenError: Saying what it wants.
    """
    if not isinstance(backbone, TimmBackbone) or name is None:
        return
    was_training = backbone.training
    try:
        with torch.inference_mode():
            backbone.eval()(torch.zeros(1, *sample_shape, device=backbone.mean.device))
    except (RuntimeError, AssertionError, ValueError) as error:
        size = " x ".join(map(str, _config(name)["input_size"]))
        raise PrenError(
            f"Backbone {name!r} does not take images {sample_shape}; its own are {size} ({error})."
        ) from error
    finally:
        backbone.train(was_training)


def _config(name: str) -> dict[str, Any]:
    """What timm knows about a model's inputs."""
    timm = import_timm()
    known = timm.get_pretrained_cfg(name, allow_unregistered=False) or timm.get_pretrained_cfg(name.split(".")[0])
    if known is None:
        raise PrenError(f"timm does not say what images {name} was trained on: choose another backbone.")
    return cast(dict[str, Any], known.to_dict(remove_source=False, remove_null=False))


def _timm_backbone(name: str, channels: int, precision: Precision, train_statistics: bool) -> TimmBackbone:
    config = _config(name)
    if channels != len(config["mean"]):
        raise PrenError(f"Backbone {name!r} takes images of {len(config['mean'])} channels, not {channels}.")
    model = import_timm().create_model(name, pretrained=False, num_classes=0)
    return TimmBackbone(model, tuple(config["mean"]), tuple(config["std"]), precision, train_statistics)
