"""QFSL (Song et al. 2018): quasi-fully supervised learning, with a loss that draws the pool to unseen classes."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pren.foundation.seeds import stream
from pren.methods.base import SCALINGS
from pren.methods.end_to_end import EndToEnd
from pren.methods.network import EpochMethod, initial_linear
from pren.methods.params import Positive, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.space import Real
from pren.problem import UNKNOWN, Problem
from pren.training.batches import TrainingSet, mixed_batches
from pren.training.trainer import Trainer


class QFSL(EpochMethod, EndToEnd):
    """p(c|x) = softmax_c(s W θ(x) · a_c) over all classes; loss -log p_y(x) + λ [-log Σ_{c∈U} p_c(x)] + η ‖W‖².

    θ is the backbone (the identity where inputs are features), W the embedding, a_c the signatures at unit length. The
    first term is for labelled inputs, the second for the pool, whose probability should lie on unseen classes. Half of
    a batch is from the pool. Scores are log-probabilities.

    In GZSL the pool has seen and unseen classes, so the second term is about the mean: with P the mean of Σ_{c∈U} p_c
    over the pool's half of a batch and π the share of unseen inputs, it is -π log P - (1 - π) log(1 - P). (The paper's
    GZSL figures come from a pool that is known to be unseen.)

    † Re-implemented from a description, without the paper. Choices made here: Adam; a factor s on the compatibilities
    (unit signatures make them small); optional hidden layers; GZSL as above. The paper takes λ from 0.5 to 2 and trains
    the backbone too. On frozen features such a λ does not tell unseen classes apart, most of all where the pool differs
    from the labelled inputs, so the default is smaller.

    Reference: "Transductive unbiased embedding for zero-shot learning", CVPR 2018.

    Attributes:
        network_: Backbone and embedding; classes in the order of their names.
        backbone_: The backbone.
    """

    name: ClassVar[str] = "qfsl"
    log_shares: ClassVar[bool] = True

    features: str = param(
        "l2", "How features are prepared; a backbone takes images as they are.", search=SCALINGS, among=PREPARATIONS
    )
    hidden: tuple[Positive, ...] = param((), "Widths of hidden layers (ReLU) of the embedding; () is the paper's.")
    scale: float = param(5.0, "s.", gt=0, search=Real(1.0, 100.0, log=True))
    bias_weight: float = param(0.01, "λ.", ge=0, search=Real(1e-2, 2.0, log=True))
    unseen_share: float | None = param(None, "π; None for the share of unseen classes in the table.", ge=0, le=1)
    batch_size: int = param(64, "Inputs in a batch, half of them from the pool.", ge=2, le=10**5)
    lr: float = param(1e-3, "Adam's learning rate.", gt=0, search=Real(1e-4, 1e-2, log=True))
    weight_decay: float = param(5e-4, "η, on all weights.", ge=0, search=Real(1e-6, 1e-2, log=True))

    network_: EmbeddingNetwork

    def _epoch(self, trainer: Trainer, problem: Problem, epoch: int) -> float:
        inputs = TrainingSet.with_pool(problem.train, problem.labels, problem.pool)
        order = mixed_batches(len(problem.train), len(problem.pool), self.batch_size, self.seed, epoch)
        return trainer.train(inputs, order)

    def _build(self, tensors: dict[str, Tensor] | None) -> EmbeddingNetwork:
        order = self._order()
        backbone, width = self._make_backbone(tensors)
        signatures, unseen = self.classes_.signatures[order], self.classes_.unseen[order]
        network = EmbeddingNetwork(
            backbone,
            [width, *self.hidden, signatures.shape[1]],
            self.scale * signatures / np.linalg.norm(signatures, axis=1, keepdims=True),
            unseen,
            stream(self.seed, "weights") if tensors is None else None,
        )
        network.bias_weight = self.bias_weight
        if self.setting_ == "gzsl":
            network.unseen_share = float(unseen.mean()) if self.unseen_share is None else self.unseen_share
        return network

    def _take_in(self) -> None:
        """The last layer is the signatures, so it is built anew."""
        saved = self.network_.state_dict()
        self.network_ = self._build(saved)
        self.network_.load_state_dict(saved)

    def _leave_out(self, place: int) -> None:
        self._take_in()

    def _adam(self, network: EmbeddingNetwork) -> torch.optim.Adam:
        groups = self._groups(network.backbone, network.embedding)
        return torch.optim.Adam(groups, weight_decay=self.weight_decay, fused=True)


class EmbeddingNetwork(nn.Module):
    """A backbone, an embedding, and a fixed last layer whose weights are the signatures.

    Args:
        backbone: (N, *sample_shape) -> (N, d).
        widths: d, the widths of the hidden layers, m.
        signatures: (L, m).
        unseen: (L,)
        rng: For the initial weights of the embedding.

    Attributes:
        bias_weight: λ.
        unseen_share: π; None where every input of the pool is of an unseen class.
    """

    signatures: Tensor
    unseen: Tensor

    def __init__(
        self,
        backbone: nn.Module,
        widths: list[int],
        signatures: Matrix,
        unseen: NDArray[np.bool_],
        rng: np.random.Generator | None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.embedding = nn.ModuleList(initial_linear(fan_in, fan_out, rng) for fan_in, fan_out in pairwise(widths))
        self.register_buffer("signatures", torch.from_numpy(signatures).float(), persistent=False)
        self.register_buffer("unseen", torch.from_numpy(unseen), persistent=False)
        self.bias_weight = 0.0
        self.unseen_share: float | None = None

    def compatibilities(self, inputs: Tensor) -> Tensor:
        """(N, *sample_shape) -> (N, L)."""
        x: Tensor = self.backbone(inputs)
        for layer in self.embedding[:-1]:
            x = layer(x).relu()
        return cast(Tensor, self.embedding[-1](x)) @ self.signatures.T

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, *sample_shape) -> (N, L) log p."""
        return self.compatibilities(inputs).double().log_softmax(dim=-1)

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Of a batch of labelled inputs and of pool inputs, whose class is unknown.

        Both go through the backbone together, so that its normalisation is the same for them.
        """
        logits, known = self.compatibilities(inputs), targets != UNKNOWN
        loss = functional.cross_entropy(logits[known], targets[known])
        return loss + self.bias_weight * bias_loss(logits[~known], self.unseen, self.unseen_share)


def bias_loss(logits: Tensor, unseen: Tensor, share: float | None) -> Tensor:
    """How far the pool is from lying among the unseen classes.

    Args:
        logits: (n, L) of pool inputs.
        unseen: (L,)
        share: None where every input is of an unseen class: the mean of -log Σ_{c∈U} p_c. Otherwise π, the share of
            inputs that are: -π log P - (1 - π) log(1 - P), P being the mean of Σ_{c∈U} p_c.
    """
    everything = logits.logsumexp(dim=1)
    inside = logits[:, unseen].logsumexp(dim=1) - everything  # log Σ_{c∈U} p_c
    if share is None:
        return -inside.mean()
    outside = logits[:, ~unseen].logsumexp(dim=1) - everything
    # The logarithm of a mean, from logarithms.
    return -share * inside.logsumexp(dim=0) - (1 - share) * outside.logsumexp(dim=0) + math.log(len(logits))
