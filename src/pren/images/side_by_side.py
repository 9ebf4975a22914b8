"""Frozen backbones side by side: the features that each makes of an image, brought to one scale, next to each other."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.images.backbones import split_names
from pren.images.cache import CachedFeatures, FeatureCache, KnownRows
from pren.images.extraction import WORKERS, Extractor, FrozenBackbone, OnProgress, extract
from pren.images.files import ImageFiles
from pren.images.registered import PLUS
from pren.images.weights import RANDOM
from pren.problem.inputs import Inputs
from pren.training.processes import agreed

SCALE = "unit length"  # of each backbone's features of an image


@dataclass(frozen=True, eq=False)
class SideBySide:
    """One frozen backbone, or several.

    What one makes is left as it is. Of several, each makes a block of features, and an image's blocks are brought to
    unit length: so none counts for more because its numbers are larger, and nothing has to be known but the image.
    """

    parts: tuple[FrozenBackbone, ...]

    @classmethod
    def load(cls, extractor: Extractor, tail: dict[str, Tensor] | None = None) -> SideBySide:
        """Build each with its weights; a `PrenError` if one cannot be had, or not beside others.

        A single one may have a `tail` that has learned something since.
        """
        return cls(tuple(FrozenBackbone.load(each, tail) for each in single_extractors(extractor)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an image's features."""
        return joined_shape([part.shape for part in self.parts])

    @property
    def facts(self) -> dict[str, Any]:
        """What makes the features what they are, recorded with every model."""
        each = [part.facts for part in self.parts]
        if len(each) == 1:
            return each[0]
        return {"backbone": PLUS.join(facts["backbone"] for facts in each), "scale": SCALE, "parts": each}

    def __call__(self, levels: Sequence[Tensor], device: torch.device) -> NDArray[np.float32]:
        """Features (n, *shape) of n images as each backbone wants them, levels from 0 to 255, rounded as in a cache."""
        made = (part(each, device) for part, each in zip(self.parts, levels, strict=True))
        return joined([torch.from_numpy(block).half().float() for block in made]).numpy()


def single_extractors(extractor: Extractor) -> list[Extractor]:
    """What is asked of each backbone; a `PrenError` for what cannot be asked of several."""
    names = split_names(extractor.backbone)
    if len(names) > 1 and extractor.weights not in (None, RANDOM):
        raise PrenError(
            "backbone-several",
            f"A file with weights is for one network, and {extractor.backbone} are {len(names)}: name one.",
        )
    if len(names) > 1 and extractor.until is not None:
        raise PrenError(
            "backbone-several",
            f"One backbone can be trained from a stage on, and {extractor.backbone} are {len(names)}: leave out "
            "--train-from and --finetune, or name one.",
        )
    return [extractor.model_copy(update={"backbone": name}) for name in names]


def joined(blocks: Sequence[Tensor]) -> Tensor:
    """Features (n, D_i) of each backbone as (n, D); a single block is left as it is."""
    if len(blocks) == 1:
        return blocks[0]
    return torch.cat([nn.functional.normalize(block, dim=1) for block in blocks], dim=1)


def joined_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Of what `joined` makes of an image."""
    return shapes[0] if len(shapes) == 1 else (sum(map(math.prod, shapes)),)


class JoinedFeatures(Inputs):
    """The features of N images from several caches, next to each other."""

    def __init__(self, blocks: Sequence[CachedFeatures]) -> None:
        self._blocks = blocks

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(D,)."""
        return joined_shape([block.sample_shape for block in self._blocks])

    def __len__(self) -> int:
        return len(self._blocks[0])

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        return joined([block[indices] for block in self._blocks])

    def select(self, places: NDArray[np.int64]) -> JoinedFeatures:
        """Some of the rows."""
        return JoinedFeatures([block.select(places) for block in self._blocks])

    def digest(self) -> bytes:
        """A hash of what the features were made from, and by what."""
        content = hashlib.sha256(SCALE.encode())
        for block in self._blocks:
            content.update(block.digest())
        return content.digest()


@dataclass(frozen=True, eq=False)
class Features:
    """What became of image files.

    Attributes:
        inputs: The features of those that can be read, in their order.
        problems: The place of each of the others, and why.
        fresh: How many images went through a network now, through the one that had most to do.
    """

    inputs: Inputs
    problems: list[tuple[int, str]]
    fresh: int


class FeatureStore:
    """What backbones have made of image files, in a cache for each: what one has made alone serves it beside others.

    Args:
        folder: Where caches are; see `cache_folder`.
        backbones: Which.
    """

    def __init__(self, folder: str | Path | None, backbones: SideBySide) -> None:
        self.backbones = backbones
        self._known = [KnownRows(FeatureCache(folder, part.facts, part.shape)) for part in backbones.parts]

    @property
    def folder(self) -> Path:
        """Where the features are: of several backbones, the folder with the folder of each."""
        own = self._known[0].cache.folder
        return own if len(self._known) == 1 else own.parent

    def extract(
        self,
        files: ImageFiles,
        fabric: Fabric,
        workers: int = WORKERS,
        strict: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Features:
        """The features of files, those that are not kept yet made by one backbone after the other; see `extract`.

        Each backbone has the files decoded for itself, as it would alone: a large JPEG is decoded at a fraction of its
        size, and at which one depends on what is wanted.
        """
        pairs = zip(self.backbones.parts, self._known, strict=True)
        found = [extract(files, part, known, fabric, workers, strict, on_progress) for part, known in pairs]
        good = np.all([each.rows >= 0 for each in found], axis=0)
        rows = zip(self._known, found, strict=True)
        blocks = [known.cache.inputs(each.rows[good]) for known, each in rows]
        with agreed(fabric):
            if len({tuple(block.keys()) for block in blocks}) > 1:
                raise PrenError(
                    "files-changed", "Image files have changed while their features were extracted: try again."
                )
        reasons = {place: why for each in reversed(found) for place, why in each.problems}
        inputs = blocks[0] if len(blocks) == 1 else JoinedFeatures(blocks)
        return Features(inputs, sorted(reasons.items()), max(each.fresh for each in found))
