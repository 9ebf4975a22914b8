"""What the benchmarks run: random ensembles of the paper's size, and the same heads as a plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from pren.core.ensemble import Ensemble
from pren.core.projection import LabelEmbeddings
from pren.training.kept_memory import KeptLinear


@dataclass(frozen=True)
class Size:
    """The sizes of an ensemble and its batches; the defaults are the paper's on CUB."""

    heads: int = 50
    features: int = 512
    hidden: tuple[int, ...] = (512, 512)
    h: int = 70
    classes: int = 200
    batch: int = 64

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of every layer of a head."""
        return list(pairwise([self.features, *self.hidden, self.h]))

    @property
    def parameters(self) -> int:
        """How many numbers Adam updates."""
        return self.heads * sum((fan_in + 1) * fan_out for fan_in, fan_out in self.layers)

    @property
    def training_flops(self) -> int:
        """Operations of the matrix products of a training step.

        Every layer has a product forward and one for its weights' gradient; every layer but the first, whose inputs
        are frozen features, has one for its inputs' gradient. The label embeddings are fixed: one forward, one back.
        """
        first, *others = [fan_in * fan_out for fan_in, fan_out in self.layers]
        return 2 * self.heads * self.batch * (2 * first + 3 * sum(others) + 2 * self.h * self.classes)


def label_embeddings(size: Size) -> LabelEmbeddings:
    """Random E_k, and subsets of half of the last quarter of the classes."""
    rng = np.random.default_rng(0)
    unseen = np.arange(size.classes - size.classes // 4, size.classes)
    subsets = np.zeros((size.heads, size.classes), dtype=bool)
    for row in subsets:
        row[rng.choice(unseen, (len(unseen) + 1) // 2, replace=False)] = True
    return LabelEmbeddings(rng.standard_normal((size.heads, size.h, size.classes)) / np.sqrt(size.h), subsets)


def batched(size: Size) -> Ensemble:
    """The package's ensemble, as PrEN builds it."""
    return Ensemble(size.features, size.hidden, label_embeddings(size), True, np.random.default_rng(1), KeptLinear)


class LoopedHeads(nn.Module):
    """The same heads as a plain loop over K `nn.Sequential`."""

    embeddings: Tensor

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = nn.ModuleList(
            nn.Sequential(*(part for shape in size.layers for part in (nn.Linear(*shape), nn.ReLU())))
            for _ in range(size.heads)
        )
        self.register_buffer("embeddings", torch.from_numpy(label_embeddings(size).vectors).float())

    def loss(self, features: Tensor, targets: Tensor) -> Tensor:
        """Eq. 3 and 4, as `Ensemble.loss`."""
        losses = [
            functional.cross_entropy(head(features) @ E, targets)
            for head, E in zip(self.heads, self.embeddings, strict=True)
        ]
        return torch.stack(losses).sum()


def random_batches(size: Size, count: int = 16) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches, several different ones: on a single one the gradients would soon vanish."""
    rng = torch.Generator().manual_seed(0)
    drawn = [
        (
            torch.randn(size.batch, size.features, generator=rng),
            torch.randint(size.classes, (size.batch,), generator=rng),
        )
        for _ in range(count)
    ]
    return cycle(drawn)
