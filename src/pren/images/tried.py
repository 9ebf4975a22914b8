"""Backbones that were tried on CUB: what each costs and is worth, to list and to choose by.

docs/results/backbones.md has the commands behind the figures.
"""

from __future__ import annotations

from dataclasses import dataclass

IMAGENET, FOUNDATION = "ImageNet-1k", "foundation"  # what a network was trained on; the latter may know test classes
PACKAGE, HUB = "extra 'photos'", "the hub, or --weights FILE"


@dataclass(frozen=True)
class Tried:
    """A backbone and its figures.

    Attributes:
        size: The side of its images, in pixels.
        features: How many it makes of a photograph.
        parameters: Of the network without a classifier, in millions.
        milliseconds: A core's time for a photograph in OpenVINO, on the machine of the page.
        folds: Top-1 of PrEN-Pool with attributes on CUB, per cent, the mean of the validation folds.
        licence: Of the weights.
        source: Where the weights come from.
        training: What it was trained on: `IMAGENET` or `FOUNDATION`.
    """

    size: int
    features: int
    parameters: float
    milliseconds: float
    folds: float
    licence: str
    source: str
    training: str


TRIED = {
    "tf_efficientnet_lite0": Tried(224, 1280, 3.4, 5, 71.6, "Apache-2.0", PACKAGE, IMAGENET),
    "tf_efficientnet_lite1": Tried(240, 1280, 4.1, 10, 75.3, "Apache-2.0", PACKAGE, IMAGENET),
    "tf_efficientnet_lite2": Tried(260, 1280, 4.8, 10, 73.4, "Apache-2.0", PACKAGE, IMAGENET),
    "efficientnet_b3": Tried(288, 1536, 10.7, 25, 81.5, "Apache-2.0", HUB, IMAGENET),
    "vit_small_patch14_dinov2": Tried(224, 768, 21.6, 56, 90.8, "Apache-2.0", HUB, FOUNDATION),
}


def usual_size(name: str) -> int | None:
    """The size at which a backbone was tried; None for timm's."""
    known = TRIED.get(name.partition(".")[0])
    return None if known is None else known.size
