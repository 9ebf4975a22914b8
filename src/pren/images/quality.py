"""How much time to spend on backbones: the choice behind ``--quality``."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

from pren.images.registered import PLUS
from pren.images.weights import PACKAGES, RANDOM, can_fetch, package_of, weights_of

log = logging.getLogger(__name__)

Quality = Literal["fast", "good", "best"]
LARGE = "vit_small_patch14_dinov2"  # the best one that was tried, see `pren.images.tried`


@dataclass(frozen=True)
class Chosen:
    """Backbones side by side, and whether mirror images go through them, too."""

    backbone: str
    mirrored: bool = False


def choose(quality: Quality, weights: str | None = None) -> Chosen:
    """The backbones of a quality whose weights are at hand.

    "fast" is the first installed one. "good" is DINOv2 where its weights can be had: in the folder `weights`, or from
    the hub. "best" adds the installed ones to it. Without DINOv2, "good" are all installed ones, and "best" adds mirror
    images.

    Raises:
        PrenError: If DINOv2 is needed, and its weights cannot be loaded.
    """
    here = list(filter(package_of, PACKAGES))
    if here and quality == "fast":
        return Chosen(here[0])
    if not here or can_have(LARGE, weights):
        return Chosen(PLUS.join([LARGE, *(here if quality == "best" else [])]))
    log.info("The weights of %s are not at hand, which would be better: --weights DIR, or a connection.", LARGE)
    return Chosen(PLUS.join(here), mirrored=quality == "best")


def can_have(name: str, weights: str | None) -> bool:
    """Whether a folder of weights, or the hub, has those of a backbone."""
    return weights == RANDOM or weights_of(name, weights) is not None or can_fetch(name)
