"""Options about photographs that several verbs share."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from pren.errors import PrenError


class Geometry(str, Enum):
    """How an image is brought to the backbone's size."""

    whole = "whole"
    timm = "timm"


BackboneName = Annotated[
    str | None,
    typer.Option("--backbone", help="The network that photographs go through; see 'pren list backbones'."),
]
WeightsFile = Annotated[
    str | None,
    typer.Option("--weights", metavar="FILE", help="Its weights: a file, or 'random'; trained ones by default."),
]
GeometryName = Annotated[
    Geometry | None,
    typer.Option("--geometry", help="Squeeze the whole image (default, as in the paper), or crop as timm does."),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Where features are kept; $PREN_CACHE or ~/.cache/pren by default."),
]


def chosen(backbone: str | None, weights: str | None, geometry: Geometry | None) -> dict[str, str]:
    """What was said about the backbone, by the names of `Extractor` and of PrEN's parameters."""
    said = {"backbone": backbone, "weights": weights, "geometry": None if geometry is None else geometry.value}
    return {key: value for key, value in said.items() if value is not None}


def wants_images(data: str | None, data_options: dict[str, Any]) -> bool:
    """Whether a data set that also comes as features has to be told that it is photographs that are meant."""
    from pren.data import DATASETS

    benchmark = data in DATASETS and DATASETS[data].needs_root
    if benchmark and "features" in data_options:
        raise PrenError("--backbone and --frozen are for photographs, --features for features: leave one out.")
    return benchmark and "images" not in data_options
