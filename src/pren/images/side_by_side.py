"""Frozen backbones side by side: their features of an image, scaled and concatenated."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.images.backbones import split_names
from pren.images.cache import CachedFeatures, FeatureCache, KnownRows
from pren.images.extraction import Extracted, Extractor, FrozenBackbone, OnProgress, extract
from pren.images.files import ImageFiles
from pren.images.look import Look
from pren.images.registered import PLUS
from pren.images.weights import RANDOM
from pren.problem.inputs import Inputs
from pren.training.processes import Fabric, agreed

SCALE = "unit length"  # of each block of features


@dataclass(frozen=True, eq=False)
class SideBySide:
    """One frozen backbone, or several.

    The features of a single one stay as they are. Each of several makes a block of features, scaled to unit length, so
    that no backbone dominates by larger numbers. The scale only depends on the image itself.
    """

    parts: tuple[FrozenBackbone, ...]

    @classmethod
    def load(cls, extractor: Extractor, tail: dict[str, Tensor] | None = None) -> SideBySide:
        """Build each with its weights; a single one can have a fine-tuned `tail`."""
        return cls(tuple(FrozenBackbone.load(each, tail) for each in single_extractors(extractor)))

    def altered(self, look: Look) -> SideBySide:
        """The same for photographs that get another look first."""
        return SideBySide(tuple(part.altered(look) for part in self.parts))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an image's features."""
        return joined_shape([part.shape for part in self.parts])

    @property
    def facts(self) -> dict[str, Any]:
        """All that determines the features, recorded with every model."""
        each = [part.facts for part in self.parts]
        if len(each) == 1:
            return each[0]
        return {"backbone": PLUS.join(facts["backbone"] for facts in each), "scale": SCALE, "parts": each}

    def __call__(self, levels: Sequence[Tensor], device: torch.device) -> NDArray[np.float32]:
        """Features (n, *shape), rounded as in a cache, of n images prepared for each backbone, levels from 0 to 255."""
        made = (part(each, device) for part, each in zip(self.parts, levels, strict=True))
        return joined([torch.from_numpy(block).half().float() for block in made]).numpy()


def single_extractors(extractor: Extractor) -> list[Extractor]:
    """The extractor of each backbone; `PrenError` for options that need a single backbone."""
    names = split_names(extractor.backbone)
    weights = extractor.weights
    if len(names) > 1 and weights not in (None, RANDOM) and not Path(weights).is_dir():
        message = (
            f"A weights file is for one backbone, but {extractor.backbone} are {len(names)}: name one, or a folder of "
            "files with their names."
        )
        raise PrenError("backbone-several", message)
    if len(names) > 1 and extractor.until is not None:
        message = (
            f"{extractor.backbone} are {len(names)} backbones: leave out --train-from and --finetune, or name one."
        )
        raise PrenError("backbone-several", message)
    return [extractor.model_copy(update={"backbone": name}) for name in names]


def joined(blocks: Sequence[Tensor]) -> Tensor:
    """Features (n, D_i) of each backbone as (n, D); a single block stays as it is."""
    if len(blocks) == 1:
        return blocks[0]
    return torch.cat([nn.functional.normalize(block, dim=1) for block in blocks], dim=1)


def joined_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the result of `joined` for one image."""
    return shapes[0] if len(shapes) == 1 else (sum(map(math.prod, shapes)),)


class JoinedFeatures(Inputs):
    """The features of N images from several caches, concatenated."""

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
        """A hash of the photographs and the extractors."""
        content = hashlib.sha256(SCALE.encode())
        for block in self._blocks:
            content.update(block.digest())
        return content.digest()


def _tell(on_progress: OnProgress, backbones: int, ended: list[Extracted], done: int, fresh: int, total: int) -> None:
    """Say how far all backbones together are, in photographs; `ended` are those that have done theirs."""
    fresh += sum(each.fresh for each in ended)
    on_progress((len(ended) * total + done) // backbones, fresh // backbones, total)


@dataclass(frozen=True, eq=False)
class Features:
    """The features of photographs.

    Attributes:
        inputs: The features of those that can be read, in their order.
        problems: The place of each of the others, and the reason.
        fresh: How many photographs were not in the cache; the largest number of any backbone.
    """

    inputs: Inputs
    problems: list[tuple[int, str]]
    fresh: int


class FeatureStore:
    """The features of backbones, with a cache for each, which it shares with its use alone or beside others.

    Args:
        folder: The folder of the caches; see `cache_folder`.
        backbones: The backbones.
    """

    def __init__(self, folder: str | Path | None, backbones: SideBySide) -> None:
        self.backbones = backbones
        self._folder = folder
        self._known = [KnownRows(FeatureCache(folder, part.facts, part.shape)) for part in backbones.parts]

    def altered(self, look: Look) -> FeatureStore:
        """The features of photographs that get another look first, in caches of their own."""
        return FeatureStore(self._folder, self.backbones.altered(look))

    @property
    def folder(self) -> Path:
        """The folder of the features; for several backbones, the parent of their folders."""
        own = self._known[0].cache.folder
        return own if len(self._known) == 1 else own.parent

    def known(self) -> dict[FrozenBackbone, int]:
        """How many photographs the cache of each backbone has."""
        return {part: len(known.cache) for part, known in zip(self.backbones.parts, self._known, strict=True)}

    def extract(
        self,
        files: ImageFiles,
        fabric: Fabric,
        workers: int | None = None,
        strict: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Features:
        """The features of files, extracted by one backbone after the other where they are missing; see `extract`.

        The files are decoded for each backbone separately, as if it were alone: the size at which a large JPEG is
        decoded depends on the backbone.
        """
        found: list[Extracted] = []
        told = None if on_progress is None else partial(_tell, on_progress, len(self._known), found)
        for part, known in zip(self.backbones.parts, self._known, strict=True):
            found.append(extract(files, part, known, fabric, workers, strict, told))
        good = np.all([each.rows >= 0 for each in found], axis=0)
        rows = zip(self._known, found, strict=True)
        blocks = [known.cache.inputs(each.rows[good]) for known, each in rows]
        with agreed(fabric):
            if len({tuple(block.keys()) for block in blocks}) > 1:
                raise PrenError("files-changed", "Photographs changed while their features were extracted: try again.")
        reasons = {place: why for each in reversed(found) for place, why in each.problems}
        inputs = blocks[0] if len(blocks) == 1 else JoinedFeatures(blocks)
        return Features(inputs, sorted(reasons.items()), max(each.fresh for each in found))
