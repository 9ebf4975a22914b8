"""From image files to features: streamed, cached, and not stopped by a bad file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from pren.engine.processes import agreed, gather
from pren.errors import PrenError
from pren.vision.backbones import DEFAULT, check_takes, create_backbone, find_backbone, give_weights, preprocessing_of
from pren.vision.cache import FeatureCache
from pren.vision.decoding import without_warnings
from pren.vision.images import ImageFiles
from pren.vision.preprocessing import Geometry, Preprocessing
from pren.vision.weights import absolute_weights, weights_digest

BATCH = 64
# On a CPU, memory for large activations is handed out page by page and anew each time: twice as slow as for few images.
BATCH_ON_CPU = 8
WORKERS = max(1, min(8, (os.cpu_count() or 1) // 2))  # decoding takes a small share of the time on a CPU
VERSION = 1  # of what happens between a file and its features; another one means another cache
OnProgress = Callable[[int, int, int], None]  # files done, of them extracted anew, files in all


class Extractor(BaseModel):
    """A frozen backbone, as a user asks for it.

    Attributes:
        backbone: A name of timm's.
        weights: None for trained ones, the path of a file, or "random".
        geometry: See `Preprocessing`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    backbone: str = DEFAULT
    weights: str | None = None
    geometry: Geometry = "whole"

    def with_absolute_paths(self) -> Extractor:
        """The same with a path that holds in any working folder."""
        return self.model_copy(update={"weights": absolute_weights(self.weights)})

    def kind_of_weights(self) -> str | None:
        """None, "random", or "file" wherever that is."""
        return self.weights if self.weights in (None, "random") else "file"


@dataclass(frozen=True, eq=False)
class FrozenBackbone:
    """A backbone that is ready to extract features.

    Attributes:
        network: (n, C, H, W) from 0 to 1 -> (n, D).
        width: D.
        preprocessing: What it wants to see.
        facts: What makes its features what they are; the key of a cache, and recorded with every model.
    """

    network: nn.Module
    width: int
    preprocessing: Preprocessing
    facts: dict[str, Any]

    @classmethod
    def load(cls, extractor: Extractor) -> FrozenBackbone:
        """Build it with its weights.

        Raises:
            PrenError: If there is no such backbone, or its weights cannot be had.
        """
        name, weights = extractor.backbone, extractor.weights
        if not find_backbone(name).trained:
            raise PrenError(f"{name} has no trained weights to freeze: choose another backbone, such as {DEFAULT}.")
        preprocessing = preprocessing_of(name, weights, extractor.geometry)
        network, width = create_backbone(name, preprocessing.sample_shape, seed=0)
        give_weights(network, name, weights)
        check_takes(network, name, preprocessing.sample_shape)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
        facts = {
            "version": VERSION,
            "backbone": name,
            "weights": weights_digest(network),
            "preprocessing": preprocessing.model_dump(mode="json"),
        }
        return cls(network.eval().requires_grad_(False), width, preprocessing, facts)

    @torch.inference_mode()
    def __call__(self, levels: Tensor, device: torch.device) -> NDArray[np.float32]:
        """Features (n, D) of (n, C, H, W) levels from 0 to 255."""
        images = levels.to(device).to(memory_format=torch.channels_last).float().div_(255)
        features: NDArray[np.float32] = self.network(images).cpu().numpy()
        return features


@dataclass(frozen=True, eq=False)
class Extracted:
    """What became of some image files.

    Attributes:
        rows: (N,) of the cache, -1 for files that could not be read.
        problems: The place and the trouble of each of those.
        fresh: How many were extracted now, and not found in the cache.
    """

    rows: NDArray[np.int64]
    problems: list[tuple[int, str]]
    fresh: int


def extract(
    files: ImageFiles,
    frozen: FrozenBackbone,
    cache: FeatureCache,
    fabric: Fabric,
    workers: int = WORKERS,
    strict: bool = False,
    on_progress: OnProgress | None = None,
) -> Extracted:
    """See to it that the features of all files are in the cache.

    Of several processes each takes its share of the files first, and then sees what the others have left in the cache,
    which may be on a disk of their own.

    Args:
        files: Which images.
        frozen: What turns them into features.
        cache: Where those are kept.
        fabric: Knows the device and the processes.
        workers: Processes that read and decode; 0 for none beside this one.
        strict: Whether a file that cannot be read is an error.
        on_progress: Called after every batch.

    Raises:
        PrenError: If the cache cannot be written, or, if `strict`, for the first bad file.
    """
    frozen.network.to(fabric.device)
    fresh = 0
    if fabric.world_size > 1:
        with agreed(fabric):
            share = np.array_split(np.arange(len(files)), fabric.world_size)[fabric.global_rank]
            fresh = _extract(files, share, frozen, cache, fabric, workers, strict, on_progress).fresh
        fresh = int(gather(fabric, np.array([fresh])).sum())
    with agreed(fabric):
        done = _extract(files, np.arange(len(files)), frozen, cache, fabric, workers, strict, on_progress)
    return replace(done, fresh=fresh + done.fresh)


def _extract(
    files: ImageFiles,
    places: NDArray[np.int64],
    frozen: FrozenBackbone,
    cache: FeatureCache,
    fabric: Fabric,
    workers: int,
    strict: bool,
    on_progress: OnProgress | None,
) -> Extracted:
    known = cache.rows()
    keys: list[bytes | None] = []
    problems: list[tuple[int, str]] = []
    fresh = 0
    size = BATCH_ON_CPU if fabric.device.type == "cpu" else BATCH
    for batch in _batches(files.prepared(frozen.preprocessing), places, set(known), size, workers):
        anew = [key for key in batch.decoded if key not in known]
        if anew:
            places_anew = [batch.decoded.index(key) for key in anew]  # not those that an earlier batch had
            cache.append(anew, frozen(batch.levels[places_anew], fabric.device))
            known |= dict.fromkeys(anew, -1)  # which row it is, the cache knows
            fresh += len(anew)
        if batch.problems and strict:
            raise PrenError(batch.problems[0][1])
        problems += batch.problems
        keys += batch.keys
        if on_progress is not None:
            on_progress(len(keys), fresh, len(places))
    rows = cache.rows() if fresh else known
    if lost := sum(key is not None and key not in rows for key in keys):
        raise PrenError(f"{lost} features are no longer in {cache.folder}: they were removed or damaged. Try again.")
    return Extracted(np.array([-1 if key is None else rows[key] for key in keys], dtype=np.int64), problems, fresh)


@dataclass
class _Batch:
    """Some files: the hash of each one's content, the pictures of those that are new, and what went wrong."""

    keys: list[bytes | None]
    decoded: list[bytes]
    levels: Tensor
    problems: list[tuple[int, str]]


class _Files(Dataset[_Batch]):
    """Files in batches, read and decoded by whichever process asks."""

    def __init__(self, files: ImageFiles, places: NDArray[np.int64], known: set[bytes], size: int) -> None:
        self._files = files
        self._pieces = [places[start : start + size] for start in range(0, len(places), size)]
        self._known = known

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, number: int) -> _Batch:
        pictures: dict[bytes, Tensor] = {}
        problems: list[tuple[int, str]] = []
        with without_warnings():
            keys = [self._read(place, pictures, problems) for place in map(int, self._pieces[number])]
        levels = list(pictures.values()) or [torch.empty(self._files.sample_shape, dtype=torch.uint8)]
        return _Batch(keys, list(pictures), torch.stack(levels), problems)

    def _read(self, place: int, pictures: dict[bytes, Tensor], problems: list[tuple[int, str]]) -> bytes | None:
        """The hash of a file's content; what it shows is decoded if that is new."""
        try:
            content = self._files.content(place)
            key = hashlib.sha256(content).digest()
            if key not in self._known and key not in pictures:
                pictures[key] = torch.from_numpy(np.ascontiguousarray(self._files.levels(place, content)))
        except PrenError as error:
            problems.append((place, str(error)))
            return None
        return key


def _batches(
    files: ImageFiles, places: NDArray[np.int64], known: set[bytes], size: int, workers: int
) -> Iterator[_Batch]:
    # A generator of its own: workers are seeded from it, though they need no chance, and not from torch's global one.
    chance = torch.Generator().manual_seed(0)
    yield from DataLoader(_Files(files, places, known, size), batch_size=None, num_workers=workers, generator=chance)
