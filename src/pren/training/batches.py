"""Training batches of labelled inputs and of inputs of the pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pren.core.pseudo import PseudoLabels
from pren.foundation.seeds import stream
from pren.problem import UNKNOWN
from pren.problem.inputs import Inputs

Augment = Callable[[Tensor, np.random.Generator], Tensor]  # changes the inputs of a batch at random
Places = NDArray[np.int64]  # in a training set: labelled inputs first, then those of the pool


def batches(images: int, size: int, count: int, seed: int, number: int) -> Iterator[Places]:
    """The batches of a round: shuffled passes over its training set, one after the other, cut into equal pieces."""
    rng = stream(seed, "batches", number)
    waiting = np.empty(0, dtype=np.int64)
    for _ in range(count):
        passes = -(-(size - len(waiting)) // images)  # as many as fill the batch
        waiting = np.concatenate([waiting, *(rng.permutation(images) for _ in range(passes))])
        yield waiting[:size]
        waiting = waiting[size:]


def mixed_batches(train: int, pool: int, size: int, seed: int, epoch: int) -> Iterator[Places]:
    """One pass over the labelled inputs: they fill the (larger) half of each batch, inputs of the pool the other."""
    labelled = size - size // 2
    count = -(-train // labelled)
    ours = batches(train, labelled, count, seed, 2 * epoch)
    theirs = batches(pool, max(size // 2, 1), count, seed, 2 * epoch + 1)
    for known, unknown in zip(ours, theirs, strict=True):
        yield np.concatenate([known, train + unknown])


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """D_s and some inputs of the pool.

    Attributes:
        train: D_s.
        labels: (N,) its classes, numbered as in the network.
        pool: The unlabelled inputs.
        pseudo: Those of the pool that take part, and their labels.
        augment: Changes the inputs of a batch; None for no change.
        chance: The random numbers for `augment`.
    """

    train: Inputs
    labels: NDArray[np.int64]
    pool: Inputs
    pseudo: PseudoLabels
    augment: Augment | None = None
    chance: np.random.Generator | None = None

    @classmethod
    def with_pool(cls, train: Inputs, labels: NDArray[np.int64], pool: Inputs) -> TrainingSet:
        """D_s and the whole pool, its classes unknown."""
        everything = np.arange(len(pool))
        return cls(train, labels, pool, PseudoLabels(everything, np.full(len(pool), UNKNOWN)))

    @classmethod
    def labelled(
        cls, train: Inputs, labels: NDArray[np.int64], augment: Augment, chance: np.random.Generator
    ) -> TrainingSet:
        """D_s alone."""
        return cls(train, labels, train, PseudoLabels.none(), augment, chance)

    def __len__(self) -> int:
        return len(self.train) + len(self.pseudo)

    def read(self, places: Places, device: torch.device) -> tuple[Tensor, Tensor]:
        """Inputs and their classes, labelled inputs first."""
        ours, theirs = places[places < len(self.train)], places[places >= len(self.train)] - len(self.train)
        x = torch.cat([self.train[ours], self.pool[self.pseudo.images[theirs]]]).to(device)
        y = torch.from_numpy(np.concatenate([self.labels[ours], self.pseudo.labels[theirs]])).to(device)
        if self.augment is None or self.chance is None:
            return x, y
        return self.augment(x, self.chance), y
