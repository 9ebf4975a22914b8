"""QFSL (Song et al. 2018): quasi-fully supervised learning, in which the pool must be of some unseen class."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, ClassVar, cast

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from pren.core.division import State
from pren.core.progressive import Round, images_at_once
from pren.core.pseudo import PseudoLabels
from pren.errors import PrenError
from pren.inputs import ArrayInputs, Inputs
from pren.methods.end_to_end import EndToEnd
from pren.methods.features import Matrix, Scaler, Scaling
from pren.methods.params import MOST, NotNegative, Positive, Rate, Seed
from pren.methods.saved import load_weights
from pren.methods.space import Choice, Real, Space
from pren.methods.training import adam_tensors, checked_mean, linear, mixed_batches, read_adam
from pren.problem import Problem
from pren.processes import over_chunks, single_process
from pren.seeds import stream
from pren.vision.backbones import check_takes, create_backbone, give_weights
from pren.vision.preprocessing import Geometry


class QFSL(EndToEnd):
    """p(c|x) = softmax_c(s W θ(x) · a_c) over all classes; loss -log p_y(x) + λ [-log Σ_{c∈U} p_c(x)] + η ‖W‖².

    θ is the backbone (the identity where inputs are features), W the embedding, a_c the signatures at unit length,
    which stay as they are. The first term is for labelled images, the second for the pool: its images must put their
    probability somewhere among the unseen classes. A batch holds as many of these as of those.

    In GZSL the pool mixes seen and unseen classes and nobody knows which image is which, so the second term asks for it
    on average: with P the mean of Σ_{c∈U} p_c over the pool's half of a batch and π the share of unseen images, it is
    -π log P - (1 - π) log(1 - P). (The paper's GZSL figures come from a pool that is known to be unseen.)

    † Re-implemented from a description without the paper's text at hand. Left open there, and chosen here: Adam; a
    factor s on the compatibilities (unit signatures make them small); hidden layers if wanted; GZSL as above.

    Fits epoch by epoch, and can be resumed after each. Reference: "Transductive unbiased embedding for zero-shot
    learning", CVPR 2018.

    Args:
        features: How to scale features; images go to the backbone as they are.
        hidden: Widths of hidden layers (ReLU) of the embedding; () is the paper's one linear layer.
        scale: s.
        bias_weight: λ.
        unseen_share: π, None for the share of unseen classes in the table.
        epochs: Passes over the labelled images.
        batch_size: Images in a batch, half of them from the pool.
        lr: Adam's learning rate.
        backbone_lr: The backbone's own, None for `lr`.
        weight_decay: η, on all weights.
        gamma: GZSL: taken off the scores (log-probabilities) of seen classes.
        backbone: Which network the images go through; None takes the problem's own, or ResNet-34 for image files.
        weights: What it starts from: None for trained weights, the path of a file, or "random".
        geometry: How image files are brought to its size: the "whole" image, or as "timm" does.
        seed: For initial weights and batches.

    Attributes:
        network_: Backbone and embedding; classes in the order of their names.
        backbone_: The backbone that was used.
    """

    name: ClassVar[str] = "qfsl"
    learned: ClassVar[str] = "network_"
    space: ClassVar[Space] = {
        "features": Choice(("raw", "l2", "standard", "minmax")),
        "scale": Real(1.0, 100.0, log=True),
        "bias_weight": Real(1e-2, 2.0, log=True),
        "lr": Real(1e-4, 1e-2, log=True),
        "weight_decay": Real(1e-6, 1e-2, log=True),
    }

    def __init__(
        self,
        features: Scaling = "raw",
        hidden: tuple[Positive, ...] = (),
        scale: Annotated[float, Field(gt=0)] = 5.0,
        bias_weight: Annotated[float, Field(ge=0)] = 0.1,
        unseen_share: Annotated[float, Field(ge=0, le=1)] | None = None,
        epochs: NotNegative = 10,
        batch_size: Annotated[int, Field(ge=2, le=MOST)] = 64,
        lr: Rate = 1e-3,
        backbone_lr: Rate | None = None,
        weight_decay: Annotated[float, Field(ge=0)] = 5e-4,
        gamma: float = 0.0,
        backbone: str | None = None,
        weights: str | None = None,
        geometry: Geometry = "whole",
        seed: Seed = 0,
    ) -> None:
        self.features = features
        self.hidden = hidden
        self.scale = scale
        self.bias_weight = bias_weight
        self.unseen_share = unseen_share
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.backbone_lr = backbone_lr
        self.weight_decay = weight_decay
        self.gamma = gamma
        self.backbone = backbone
        self.weights = weights
        self.geometry = geometry
        self.seed = seed

    def fit_rounds(
        self, problem: Problem, state: dict[str, Tensor] | None = None, fabric: Fabric | None = None
    ) -> Iterator[Round]:
        """Train epoch by epoch; see `Method.fit_rounds`."""
        self._begin(problem, fresh=state is None)
        problem = self._prepared(problem)
        fabric = fabric or single_process()
        self.check_processes(fabric.world_size)
        if state is None:
            self.scaler_ = Scaler.fit(self.features, problem.train) if len(self.sample_shape_) == 1 else None
            self.network_ = self._build()
            give_weights(self.network_.backbone, self.backbone_, self.weights)
            check_takes(self.network_.backbone, self.backbone_, self.sample_shape_)
        network = self.network_.to(fabric.device)
        adam = self._adam(network)
        done = 0
        if state is not None:
            done, entries = self._read_training_state(state, self._adam(network))
            adam.load_state_dict({**adam.state_dict(), "state": entries})
        train, pool = self._scaled(problem.train), self._scaled(problem.pool)
        labels = torch.from_numpy(np.argsort(self._order())[problem.labels])
        for epoch in range(done + 1, self.epochs + 1):
            loss = self._epoch(fabric, adam, train, labels, pool, epoch)
            self._done, self._adam_state = epoch, adam.state_dict()["state"]
            yield Round(epoch - 1, loss, PseudoLabels.none(), 0)

    def _epoch(
        self, fabric: Fabric, adam: torch.optim.Adam, train: Inputs, labels: Tensor, pool: Inputs, epoch: int
    ) -> float:
        """One pass over the labelled images; returns the mean loss."""
        network, losses = self.network_.train(), []
        share = None
        if self.setting_ == "gzsl":
            share = float(self.classes_.unseen.mean()) if self.unseen_share is None else self.unseen_share
        count = -(-len(train) // (self.batch_size - self.batch_size // 2))
        for ours, theirs in mixed_batches(len(train), len(pool), self.batch_size, count, self.seed, epoch):
            # One pass through the backbone for both halves: its normalisation must not tell them apart.
            logits = network(torch.cat([train[ours], pool[theirs]]).to(fabric.device))
            loss = functional.cross_entropy(logits[: len(ours)], labels[ours].to(fabric.device))
            loss = loss + self.bias_weight * bias_loss(logits[len(ours) :], network.unseen, share)
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
            losses.append(loss.detach())
        return checked_mean(losses, network)

    def training_state(self) -> dict[str, Tensor]:
        """Adam's state and the number of the last epoch; the weights are the model's."""
        return {**adam_tensors(self._adam_state), "epoch": torch.tensor(self._done)}

    def _read_training_state(self, state: dict[str, Tensor], adam: torch.optim.Adam) -> tuple[int, State]:
        try:
            done = int(state["epoch"])
            if not 1 <= done <= self.epochs:
                raise ValueError(f"there is no epoch {done}")
            return done, read_adam(state, adam, stepped=True)
        except (KeyError, ValueError, TypeError, OverflowError, RuntimeError) as error:
            raise PrenError(f"The state of training is damaged or belongs to another model: {error}") from error

    def _scores(self, inputs: Inputs) -> Matrix:
        fabric = single_process()
        network = self.network_.to(fabric.device).eval()

        def log_probabilities(chunk: Tensor) -> Tensor:
            logits: Tensor = network(chunk)
            return logits.double().log_softmax(dim=-1)

        by_name = over_chunks(fabric, self._scaled(inputs), images_at_once(inputs, fabric), log_probabilities)
        return self._calibrated(by_name[:, np.argsort(self._order())])

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        scaler = self.scaler_.state() if self.scaler_ is not None else {}
        return {**self.network_.state_dict(), **scaler}, self._backbone_facts()

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        # Before anything is built: numbers in the facts must not make us ask for more memory than the file itself is.
        if max(self.sample_shape_[0], *self.hidden, 0) > max(tensor.numel() for tensor in tensors.values()):
            raise ValueError("inputs or hidden layers are not those of the weights")
        flat = len(self.sample_shape_) == 1
        self.scaler_ = Scaler.restore(self.features, tensors, self.sample_shape_[0]) if flat else None
        self._restore_backbone(tensors, facts)
        network = self._build()
        classes = {name: value.clone() for name, value in network.named_buffers(recurse=False)}
        load_weights(network, {name: value for name, value in tensors.items() if not name.startswith("scaler.")})
        if any(not torch.equal(tensors[name], value) for name, value in classes.items()):
            raise ValueError("the network was made for other classes")
        self.network_ = network

    def _scaled(self, inputs: Inputs) -> Inputs:
        return inputs if self.scaler_ is None else ArrayInputs(self.scaler_(inputs).astype(np.float32))

    def _build(self) -> EmbeddingNetwork:
        order = self._order()
        backbone, width = create_backbone(self.backbone_, self.sample_shape_, self.seed)
        signatures = self.classes_.signatures[order]
        return EmbeddingNetwork(
            backbone,
            [width, *self.hidden, signatures.shape[1]],
            self.scale * signatures / np.linalg.norm(signatures, axis=1, keepdims=True),
            self.classes_.unseen[order],
            stream(self.seed, "weights"),
        )

    def _adam(self, network: EmbeddingNetwork) -> torch.optim.Adam:
        groups = [{"params": list(network.embedding.parameters()), "lr": self.lr}]
        backbone = list(network.backbone.parameters())
        if backbone:
            groups.append({"params": backbone, "lr": self.backbone_lr or self.lr})
        return torch.optim.Adam(groups, weight_decay=self.weight_decay, fused=True)


class EmbeddingNetwork(nn.Module):
    """A backbone, an embedding, and a last layer that does not learn: its weights are the signatures.

    Args:
        backbone: (N, *sample_shape) -> (N, d).
        widths: d, the hidden layers', m.
        signatures: (L, m).
        unseen: (L,)
        rng: Where the initial weights of the embedding come from.
    """

    signatures: Tensor
    unseen: Tensor

    def __init__(
        self,
        backbone: nn.Module,
        widths: list[int],
        signatures: Matrix,
        unseen: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.embedding = nn.ModuleList(linear(fan_in, fan_out, rng) for fan_in, fan_out in pairwise(widths))
        self.register_buffer("signatures", torch.from_numpy(signatures).float())
        self.register_buffer("unseen", torch.from_numpy(unseen))

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, *sample_shape) -> (N, L) compatibilities."""
        x: Tensor = self.backbone(inputs)
        for layer in self.embedding[:-1]:
            x = layer(x).relu()
        return cast(Tensor, self.embedding[-1](x)) @ self.signatures.T


def bias_loss(logits: Tensor, unseen: Tensor, share: float | None) -> Tensor:
    """How far the pool is from lying among the unseen classes.

    Args:
        logits: (n, L) of pool images.
        unseen: (L,)
        share: None where every image is of an unseen class: the mean of -log Σ_{c∈U} p_c. Otherwise π, the share of
            images that are: -π log P - (1 - π) log(1 - P), P being the mean of Σ_{c∈U} p_c.
    """
    everything = logits.logsumexp(dim=1)
    inside = logits[:, unseen].logsumexp(dim=1) - everything  # log Σ_{c∈U} p_c
    if share is None:
        return -inside.mean()
    outside = logits[:, ~unseen].logsumexp(dim=1) - everything
    # The logarithm of a mean, from logarithms.
    return -share * inside.logsumexp(dim=0) - (1 - share) * outside.logsumexp(dim=0) + math.log(len(logits))
