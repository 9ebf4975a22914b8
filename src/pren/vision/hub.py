"""Trained weights from the Hugging Face hub, through timm."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
from torch import Tensor

from pren.vision.torchvision_operators import import_timm

SECONDS = 3


def fetch(name: str) -> dict[str, Tensor]:
    """The weights of a timm model, classifier included, from the hub or from what it has left on this machine.

    Raises:
        OSError: If the hub cannot be reached; timm and the hub's client raise other things as well.
    """
    timm = import_timm()
    _check_connection(timm.get_pretrained_cfg(name).hf_hub_id)
    with torch.random.fork_rng(devices=[]):  # timm draws random weights first
        return cast(dict[str, Tensor], timm.create_model(name, pretrained=True).state_dict())


def _check_connection(model: str | None) -> None:
    """Raise an `OSError` within seconds where the hub's client would try again for a minute."""
    from huggingface_hub import constants

    if model is None or Path(constants.HF_HUB_CACHE, f"models--{model.replace('/', '--')}", "snapshots").exists():
        return
    if constants.HF_HUB_OFFLINE:
        raise OSError("HF_HUB_OFFLINE is set")
    endpoint = urlsplit(constants.ENDPOINT)
    if getproxies().keys() & {endpoint.scheme, "all"}:  # whom a proxy reaches, it alone knows
        return
    address = endpoint.hostname or "", endpoint.port or (80 if endpoint.scheme == "http" else 443)
    try:
        socket.create_connection(address, timeout=SECONDS).close()
    except OSError as error:
        raise OSError(f"no connection to {constants.ENDPOINT}") from error
