"""From photographs to features: streamed, cached, and not stopped by an unreadable file."""

from __future__ import annotations

import multiprocessing
import os
from collections import ChainMap
from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PositiveInt, model_validator
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from pren.foundation.errors import PrenError
from pren.images.backbones import DEFAULT, check_takes, create_backbone, find_backbone
from pren.images.cache import FeatureCache, KnownRows
from pren.images.decoding import TURNS, without_warnings
from pren.images.engines import HALF, TORCH, EngineName, OpenVINOEngine, choose_engine
from pren.images.files import ImageFiles, Reading, stacked
from pren.images.finetune.finetuning import Finetuning
from pren.images.finetune.tails import front_of, give_tail
from pren.images.look import Altered, Look
from pren.images.preprocessing import Geometry, Preprocessing
from pren.images.registered import BACKBONES, PLUS
from pren.images.tokens import BOTH, ClassAndMean, Tokens, has_class_token
from pren.images.weights import absolute_weights, installed_backbone, weights_digest
from pren.training.processes import Fabric, agreed, gather

BATCH = 64
BATCH_ON_CPU = 8  # a CPU allocates large activations page by page each time, which is twice as slow as for few images
# Decoding takes a small share of the time for small photographs, and most of it for those of a camera: for small ones,
# most of these wait.
WORKERS = max(1, min(8, os.cpu_count() or 1))
LAST_STAGE = "1"  # counted from the end
VERSION = 2  # of the way from a file to its features; another version uses another cache
OnProgress = Callable[[int, int, int], None]  # files done, those not from the cache, files in all


class Extractor(BaseModel):
    """The choice of a frozen backbone; see `load_weights` and `Preprocessing` for weights and geometry.

    The default backbone is one whose weights are installed, so that no download is needed, or else the paper's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    backbone: str
    weights: str | None = None
    geometry: Geometry = "whole"
    mirrored: bool = False  # whether to average the features of an image and of its mirror image
    until: str | None = None  # stop before this stage, see `pren.images.finetune.stages`; None for the whole network
    finetune: Finetuning | None = None  # how to fine-tune the later stages on the seen classes; None for not at all
    size: PositiveInt | None = None  # the side of its images in pixels; None for the usual one
    tokens: Tokens = BOTH  # the features of transformers
    engine: EngineName | None = None  # what runs the network; None for the fastest here, see `choose_engine`
    alike: bool | None = None  # whether labelled photographs are made like the pool's; None for a user's folder only

    @model_validator(mode="before")
    @classmethod
    def _with_backbone(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        own = None if given.get("weights") else installed_backbone()  # a weights file is for the paper's backbone
        given = {"backbone": own or DEFAULT, **given}
        return given if given.get("finetune") is None or given.get("until") else {**given, "until": LAST_STAGE}

    @model_validator(mode="after")
    def _mirrored_whole(self) -> Extractor:
        # A mirrored map is not the map of the mirror image, because padding differs between left and right.
        if self.mirrored and self.until is not None:
            raise ValueError("mirror images need a frozen backbone: leave out --mirrored or the training")
        return self

    @model_validator(mode="after")
    def _trained_by_torch(self) -> Extractor:
        if self.engine not in (None, TORCH) and self.until is not None:
            raise ValueError("what is trained runs through torch: leave out --engine or the training")
        return self

    @model_validator(mode="after")
    def _alike_frozen(self) -> Extractor:
        if self.alike and self.until is not None:
            raise ValueError("labelled photographs are altered for frozen backbones: leave out --alike or the training")
        return self

    def resolved(self) -> Extractor:
        """The same with an absolute path of the weights, and the engine of this machine."""
        return self.model_copy(update={"weights": absolute_weights(self.weights), "engine": self.own_engine()})

    def own_engine(self) -> EngineName:
        """The engine on this machine; `PrenError` if it is not installed.

        What is trained runs through torch. So does what a user has registered, unless another engine is asked for: a
        network that decides by the image which way to go is not the same in OpenVINO.
        """
        own = any(name in BACKBONES for name in self.backbone.split(PLUS))
        return TORCH if self.until is not None or (own and self.engine is None) else choose_engine(self.engine)

    def of_record(self, facts: dict[str, Any]) -> Extractor:
        """The same with what was chosen by itself, as recorded facts say; they say nothing of what came later."""
        parts = facts.get("parts", [facts])
        one = parts[0] if len(parts) == 1 and parts[0].get("backbone") == self.backbone else {}
        size = one.get("preprocessing", {}).get("sample_shape", [None])[-1]
        tokens = BOTH if any("tokens" in part for part in parts) else "class"
        return self.model_copy(
            update={"engine": parts[0].get("engine", TORCH), "size": self.size or size, "tokens": tokens}
        )

    def kind_of_weights(self) -> str | None:
        """None, "random" or "file"."""
        return self.weights if self.weights in (None, "random") else "file"


class Mirrored(nn.Module):
    """The mean of a network's features of images and of their mirror images."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """(n, C, H, W) -> (n, D)."""
        return cast(Tensor, self.network(images) + self.network(images.flip(3))) / 2


@dataclass(frozen=True, eq=False)
class FrozenBackbone:
    """A network (n, C, H, W) from 0 to 1 -> (n, *shape) that is ready to extract features.

    `facts` hold all that determines its features: the key of a cache, recorded with every model.
    """

    network: nn.Module
    shape: tuple[int, ...]
    preprocessing: Preprocessing
    facts: dict[str, Any]
    engine: OpenVINOEngine | None = None  # None for torch

    @classmethod
    def load(cls, extractor: Extractor, tail: dict[str, Tensor] | None = None) -> FrozenBackbone:
        """Build it with its weights; with the weights of a fine-tuned `tail`, the whole network."""
        name, weights = extractor.backbone, extractor.weights
        backbone = find_backbone(name, extractor.size)
        if not backbone.trained:
            raise PrenError(
                "weights-missing",
                f"{name} has no trained weights: choose another backbone, such as {DEFAULT}, or train one "
                "(--method pren without --frozen).",
            )
        preprocessing = backbone.preprocessing(weights, extractor.geometry)
        network, width = create_backbone(name, preprocessing.sample_shape, seed=0, size=extractor.size)
        backbone.give_weights(network, weights)
        check_takes(network, name, preprocessing.sample_shape)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
        facts = {"version": VERSION, "backbone": name, "weights": weights_digest(network)}
        facts["preprocessing"] = preprocessing.model_dump(mode="json")
        shape: tuple[int, ...] = (width,)
        network.eval().requires_grad_(False)
        if extractor.tokens == BOTH and extractor.until is None and has_class_token(network):
            network, facts["tokens"], shape = ClassAndMean(network), BOTH, (2 * width,)
        if extractor.mirrored:
            network, facts["mirrored"] = Mirrored(network), True
        if extractor.until is not None:
            front, stage = front_of(name, network, extractor.until, preprocessing.sample_shape)
            if tail is None:
                network, facts["until"], shape = front, stage.name, stage.shape
            else:
                give_tail(network, tail)
                facts["finetuned"] = {"from": stage.name, "weights": weights_digest(network)}
        engine = None
        if (own := extractor.own_engine()) != TORCH:  # torch is not named: caches were made before there were engines
            engine = OpenVINOEngine(network, preprocessing.sample_shape, shape, name, half=own == HALF)
            facts["engine"] = own
        return cls(network, shape, preprocessing, facts, engine)

    def altered(self, look: Look) -> FrozenBackbone:
        """The same for photographs that get another look first."""
        preprocessing = Altered(look=look, **self.preprocessing.model_dump())
        facts = {**self.facts, "preprocessing": preprocessing.model_dump(mode="json")}
        return replace(self, preprocessing=preprocessing, facts=facts)

    def at_once(self, device: torch.device) -> int:
        """How many images keep the device busy."""
        return batch_size(device) if self.engine is None else self.engine.at_once

    @torch.inference_mode()
    def __call__(self, levels: Tensor, device: torch.device) -> NDArray[np.float32]:
        """Features (n, *shape) of (n, C, H, W) levels from 0 to 255, a batch at a time."""
        if self.engine is not None:
            return self.engine(levels)
        self.network.to(device)
        features = np.empty((len(levels), *self.shape), dtype=np.float32)
        for start in range(0, len(levels), size := batch_size(device)):
            batch = levels[start : start + size].to(device).to(memory_format=torch.channels_last)
            features[start : start + size] = self.network(batch.float().div(255)).cpu().numpy()
        return features


def batch_size(device: torch.device) -> int:
    """How many images go through a backbone at once."""
    return BATCH_ON_CPU if device.type == "cpu" else BATCH


@dataclass(frozen=True, eq=False)
class Extracted:
    """The result of extracting N photographs.

    Attributes:
        rows: (N,) rows of the cache, -1 for photographs that cannot be read.
        problems: The place of each of those, and the reason.
        fresh: How many were not in the cache before.
    """

    rows: NDArray[np.int64]
    problems: list[tuple[int, str]]
    fresh: int


def extract(
    files: ImageFiles,
    frozen: FrozenBackbone,
    cache: FeatureCache | KnownRows,
    fabric: Fabric,
    workers: int | None = None,
    strict: bool = False,
    on_progress: OnProgress | None = None,
) -> Extracted:
    """Make sure that the features of all files are in the cache.

    With several processes, each extracts its share of the files first, and then what is missing in its cache: processes
    on other machines may have caches of their own.

    Args:
        files: The photographs.
        frozen: The backbone.
        cache: A cache, or its `KnownRows` for repeated calls.
        fabric: The device and the processes.
        workers: Processes that read and decode; 0 for this process. By default `WORKERS`, and 0 for a few photographs.
        strict: Whether an unreadable file is an error.
        on_progress: Called after every batch.

    Raises:
        PrenError: If the cache cannot be written, or, if `strict`, for the first unreadable file.
    """
    images = files.prepared(frozen.preprocessing)
    index = cache if isinstance(cache, KnownRows) else KnownRows(cache)
    index.cache.check_room(len(files))
    run = partial(_extract, images, frozen, index, fabric.device, workers, strict, on_progress)
    everything, fresh = np.arange(len(files)), 0
    if fabric.world_size > 1:
        with agreed(fabric):
            fresh = run(np.array_split(everything, fabric.world_size)[fabric.global_rank]).fresh
        fresh = int(gather(fabric, np.array([fresh])).sum())
    with agreed(fabric):
        done = run(everything)
    return replace(done, fresh=fresh + done.fresh)


def _extract(
    files: ImageFiles,
    frozen: FrozenBackbone,
    index: KnownRows,
    device: torch.device,
    workers: int | None,
    strict: bool,
    on_progress: OnProgress | None,
    places: NDArray[np.int64],
) -> Extracted:
    cache, known = index.cache, index.update()
    if workers is None:  # starting a process takes longer than a few photographs
        workers = 0 if len(places) <= BATCH else WORKERS
    found: list[Reading] = []
    extracted: set[bytes] = set()
    chance = torch.Generator().manual_seed(0)  # DataLoader would draw the workers' seeds from torch's global generator
    turns = multiprocessing.RLock() if workers else TURNS  # not shared with other calls: a killed worker keeps it
    read = partial(_read_batch, files, ChainMap({}, known), turns)
    for readings, decoded, levels in DataLoader(
        cast(Dataset[int], places), frozen.at_once(device), num_workers=workers, collate_fn=read, generator=chance
    ):
        new = [
            place for place, key in enumerate(decoded) if key not in extracted
        ]  # another worker may have read a copy
        if new:
            keys = [decoded[place] for place in new]
            cache.append(keys, frozen(levels[new], device))
            extracted.update(keys)
        found += readings
        if strict and (errors := [reading.error for reading in readings if reading.error]):
            raise PrenError("input-unreadable", errors[0])
        if on_progress is not None:
            on_progress(len(found), len(extracted), len(places))
    rows = index.update() if extracted else known
    if lost := sum(not reading.error and reading.key not in rows for reading in found):
        message = f"{lost} features in {cache.folder} were removed or damaged meanwhile: try again."
        raise PrenError("cache-lost", message)
    problems = [(place, reading.error) for place, reading in enumerate(found) if reading.error]
    places = np.array([rows.get(reading.key, -1) for reading in found], dtype=np.int64)
    return Extracted(places, problems, len(extracted))


_Batch = tuple[list[Reading], list[bytes], Tensor]  # files, the keys of new ones, and their levels (n, C, H, W)


def _read_batch(
    files: ImageFiles,
    known: MutableMapping[bytes, int],
    turns: AbstractContextManager[Any],
    places: list[int],
) -> _Batch:
    """Read files and decode those that are not known, in a worker or in this process."""
    readings = []
    with without_warnings():
        for place in places:
            readings.append(files.read(place, known, turns))
            known[readings[-1].key] = -1  # decode only one of several copies
    keys = [reading.key for reading in readings if reading.levels is not None]
    levels = stacked(readings, files.sample_shape)  # one tensor moves to another process fastest
    return [reading._replace(levels=None) for reading in readings], keys, levels
