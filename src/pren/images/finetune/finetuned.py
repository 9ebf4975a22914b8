"""Features of a network whose last stages (its tail) are fine-tuned on the seen classes.

Seen classes that are held out for validation must not have features that were learned from them: these would be better
than those of really unseen classes. So the inputs of such a problem can be learned again without them (see
`Inputs.relearned`). Every trained tail is saved beside the features and reused.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from pren.foundation.files import make_folder, write_tensors
from pren.images.backbones import create_backbone, find_backbone
from pren.images.cache import CachedFeatures, FeatureCache, KnownRows, cache_folder
from pren.images.extraction import Extractor, FrozenBackbone
from pren.images.finetune.finetuning import Finetuning, between, learn_classes
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs, Inputs
from pren.training.chunks import apply
from pren.training.processes import Fabric, agreed, share, share_text, share_weights, wait_for_all

log = logging.getLogger(__name__)

TAILS = "tails"  # the folder of saved tails in the cache
AT_ONCE = 4096  # images whose features are written together
Places = NDArray[np.int64]
Tail = dict[str, Tensor]  # its weights, by name


class LearnedFeatures(Inputs):
    """Features of labelled images from a tail that was fine-tuned on them.

    Args:
        features: (N, D).
        trainer: Trains the tail.
        places: (N,) the places of these images among the trainer's labelled images.
        strength: See `Finetuning`.
    """

    def __init__(self, features: Inputs, trainer: TailTrainer, places: Places, strength: float) -> None:
        self._features = features
        self._trainer = trainer
        self._places = places
        self._strength = strength

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(D,)."""
        return self._features.sample_shape

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        return self._features[indices]

    @property
    def learned(self) -> bool:
        """Always True."""
        return True

    def digest(self) -> bytes:
        """A hash of the images and the training."""
        return self._features.digest()

    def select(self, places: NDArray[np.int64]) -> LearnedFeatures:
        """Some of them, which can be learned again as well."""
        return LearnedFeatures(self._features.select(places), self._trainer, self._places[places], self._strength)

    def relearned(self, places: NDArray[np.int64]) -> LearnedFeatures:
        """The same images with features learned from those at `places` only."""
        return self._trainer.learned_from(self._places[places], self._strength, self._places)


@dataclass(frozen=True, eq=False)
class TailTrainer:
    """Trains tails of one network on some of a problem's labelled images.

    Attributes:
        problem: Of cached maps, the inputs of the tail; its `backbone` is the tail's name.
        extractor: The user's choice.
        facts: Of the network's front, which made the maps.
        folder: The folder of tails and features.
        fabric: The device and the processes.
    """

    problem: Problem
    extractor: Extractor
    facts: dict[str, Any]
    folder: Path
    fabric: Fabric

    @classmethod
    def of(cls, problem: Problem, extractor: Extractor, cache: str | Path | None, fabric: Fabric) -> TailTrainer:
        """The trainer for a problem that `freeze` has made with an extractor that stops before a stage."""
        assert problem.extractor is not None
        return cls(problem, extractor, problem.extractor["facts"], cache_folder(cache), fabric)

    @property
    def plan(self) -> Finetuning:
        """How tails learn."""
        assert self.extractor.finetune is not None
        return self.extractor.finetune

    def learned_from(self, learned: Places, strength: float, places: Places) -> LearnedFeatures:
        """Features of the labelled images at `places` from a tail trained on those at `learned`."""
        network = self._network(self.tail(learned, strength))
        features = apply(self.fabric, network, self.problem.train.select(places)).astype(np.float16)
        return LearnedFeatures(ArrayInputs(features, "features"), self, places, strength)

    def not_learned(self, places: Places, strength: float) -> LearnedFeatures:
        """Labelled images whose features are not learned yet."""
        return LearnedFeatures(self.problem.train.select(places), self, places, strength)

    def notes(self, about: str) -> Path:
        """The file for the result of a trial on held-out classes."""
        table = self.problem.classes
        by_name = np.argsort(np.array(table.names), kind="stable")
        described = np.ascontiguousarray(table.signatures[by_name[table.seen[by_name]]]).tobytes()
        how_many = f"{about} {self.problem.setting} {int(table.unseen.sum())}"
        key = self._key(np.arange(len(self.problem.train))).encode() + how_many.encode() + described
        return self.folder / TAILS / f"{hashlib.sha256(key).hexdigest()[:16]}.json"

    def tail(self, learned: Places, strength: float) -> Tail:
        """The weights of a tail trained on some of the labelled images; they are saved for reuse."""
        own = self._network().state_dict()
        if strength == 0:
            return own
        whole = self._found(learned)
        if whole is None:
            network = self._network()
            images, labels = self.problem.train.select(learned), self.problem.labels[learned]
            width = int(cast(int, network.num_features))
            learn_classes(network, width, images, labels, self.problem.classes, self.plan, self.fabric)
            share_weights(self.fabric, network)
            whole = network.state_dict()
            with agreed(self.fabric):
                if self.fabric.is_global_zero:
                    path = self._path(learned)
                    make_folder(path.parent)
                    write_tensors(path, whole)
        return between(own, {name: value.to(own[name]) for name, value in whole.items()}, strength)

    def finished(self, tail: Tail, strength: float, cache: str | Path | None) -> Problem:
        """The problem with a tail's features of all its maps, through the cache."""
        frozen = FrozenBackbone.load(self.extractor, tail)
        store = FeatureCache(cache, frozen.facts, frozen.shape)
        network, everything = self._network(tail), np.arange(len(self.problem.train))
        origin = self._key(everything)  # not a hash of the tail, whose last bits depend on the number of threads
        train, pool = (self._kept(network, maps, store, origin) for maps in (self.problem.train, self.problem.pool))
        plan = self.plan.model_copy(update={"strength": strength})
        asked = self.extractor.resolved().model_copy(update={"finetune": plan})
        record = {"asked": asked.model_dump(mode="json"), "facts": frozen.facts}
        learned = LearnedFeatures(train, self, everything, strength)
        return replace(self.problem, train=learned, pool=pool, backbone=None, extractor=record, tail=tail)

    def _kept(self, network: nn.Module, maps: Inputs, store: FeatureCache, origin: str) -> CachedFeatures:
        """Features of all maps in a cache, under the keys of the maps."""
        assert isinstance(maps, CachedFeatures)
        keys, known = maps.keys(), KnownRows(store)
        for start in range(0, len(maps), AT_ONCE):
            places = np.arange(start, min(start + AT_ONCE, len(maps)))
            there = known.update()
            new = np.array([place for place in places if keys[place] not in there], dtype=np.int64)
            features = apply(self.fabric, network, maps.select(new)) if len(new) else None
            with agreed(self.fabric):
                if features is not None and self.fabric.local_rank == 0:  # each machine can have its own disk
                    store.append([keys[place] for place in new], features)
        wait_for_all(self.fabric)
        rows = known.update()
        return store.inputs(np.array([rows[key] for key in keys], dtype=np.int64), origin)

    def _network(self, tail: Tail | None = None) -> nn.Module:
        """A tail with the network's original weights, or with the given ones."""
        name, shape = self.problem.backbone, self.problem.train.sample_shape
        network, _ = create_backbone(name, shape, seed=0, train_statistics=False)
        if tail is None:
            find_backbone(name or "").give_weights(network, self.extractor.weights)
        else:
            network.load_state_dict(tail)
        return network.to(self.fabric.device)

    def _found(self, learned: Places) -> Tail | None:
        """A tail that was trained before, as the first process finds it; None if there is none."""
        path, found = self._path(learned), None
        with agreed(self.fabric):
            if self.fabric.is_global_zero and path.exists():
                found = self._read(path)
        if not share_text(self.fabric, "found" if found is not None else ""):
            return None
        return share(self.fabric, found or {})

    def _read(self, path: Path) -> Tail | None:
        """The weights in a file; None if they do not fit the tail."""
        try:
            tail = load_file(path)
        except (OSError, SafetensorError) as error:
            log.warning("%s cannot be read and is made again: %s", path, error)
            return None
        shapes = {name: value.shape for name, value in self._network().state_dict().items()}
        same = {name: value.shape for name, value in tail.items()} == shapes
        if same and all(bool(value.isfinite().all()) for value in tail.values()):
            return tail
        log.warning("%s does not hold the weights of %s and is made again.", path, self.problem.backbone)
        return None

    def _path(self, learned: Places) -> Path:
        return self.folder / TAILS / f"{self._key(learned, whole=True)}.safetensors"

    def _key(self, learned: Places, whole: bool = False) -> str:
        """A hash of all that determines a tail; without the strength for a `whole` (fully trained) tail."""
        maps, problem = self.problem.train, self.problem
        assert isinstance(maps, CachedFeatures)
        plan = self.plan.model_dump(mode="json", exclude={"strength"} if whole else None)
        content = hashlib.sha256(json.dumps([self.facts, plan], sort_keys=True).encode())
        names = [problem.classes.names[label] for label in problem.labels[learned]]
        content.update(b"".join(maps.select(learned).keys()) + "\0".join(names).encode())
        if self.plan.targets != "classes":
            seen = np.unique(problem.labels[learned])
            content.update(np.ascontiguousarray(problem.classes.signatures[seen]).tobytes())
        return content.hexdigest()[:16]
