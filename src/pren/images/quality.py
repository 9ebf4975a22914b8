"""How much time to spend on backbones: the choice behind ``--quality``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pren.images.registered import PLUS
from pren.images.weights import PACKAGES, obtain, package_of, weights_of

log = logging.getLogger(__name__)

Quality = Literal["fast", "good", "best"]
USUAL: Quality = "good"
LARGE = "vit_small_patch14_dinov2"  # the best one that was tried, see `pren.images.tried`


@dataclass(frozen=True)
class Chosen:
    """Backbones side by side, and whether mirror images go through them, too."""

    backbone: str
    mirrored: bool = False


def choose(quality: Quality, weights: str | None = None) -> Chosen:
    """The backbones of a quality whose weights are at hand.

    "fast" is the first installed one. "good" is DINOv2 where its weights can be had (in the folder `weights`, or from
    the hub), or else all installed ones: beside DINOv2 they gain nothing. "best" adds mirror images.

    Raises:
        PrenError: If DINOv2 is needed, and its weights cannot be loaded.
    """
    here = list(filter(package_of, PACKAGES))
    if here and quality == "fast":
        return Chosen(here[0])
    missing = "" if weights_of(LARGE, weights) is not None else obtain(LARGE)
    if here and missing:
        message = "%s would be better, but its weights cannot be had (%s): --weights DIR, or a connection."
        log.info(message, LARGE, missing)
    return Chosen(PLUS.join(here) if here and missing else LARGE, mirrored=quality == "best")


def with_usual(said: Mapping[str, Any], own: bool) -> dict[str, Any]:
    """Settings of a frozen backbone; for a user's `own` photographs, with the usual backbones if none are named.

    Where results are compared, and where one is trained, the usual one is `Extractor`'s: it needs no connection.
    """
    weights, trained = said.get("weights"), said.get("until") or said.get("finetune") is not None
    files = weights is not None and not Path(weights).is_dir()  # a file, or random ones: of one backbone
    if not own or said.get("backbone") or trained or files:
        return dict(said)
    chosen = asdict(choose(USUAL, weights))
    return {**said, **chosen, "mirrored": chosen["mirrored"] or bool(said.get("mirrored"))}
