"""One trainer for every network: steps of Adam on batches, in one or several processes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pren.foundation.errors import PrenError
from pren.training.adam import forget_traces
from pren.training.batches import Places, TrainingSet
from pren.training.processes import Fabric, mean

if TYPE_CHECKING:
    import lightning_fabric

STEPS_BETWEEN = 100  # 0.9^100 does not turn a value above `FORGOTTEN` into a denormal number


class Trainable(Protocol):
    """A network with a loss."""

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of a batch."""


class Trainer:
    """Trains a network in place.

    Args:
        fabric: The device and the processes.
        network: The network of this process.
        optimizer: Of its weights; its state carries over from round to round.
        apart: Whether every process trains a network of its own on whole batches. Otherwise all train the same network
            on parts of a batch, and gradients are averaged in each step.
        pieces: Cut each batch into so many pieces and add up their gradients, to save memory.
    """

    def __init__(
        self, fabric: Fabric, network: nn.Module, optimizer: Optimizer, apart: bool = False, pieces: int = 1
    ) -> None:
        self.fabric = fabric
        self.optimizer = optimizer
        self._network = network
        self._apart = apart
        self._averaged = fabric.world_size > 1 and not apart
        self._pieces = pieces
        self._loss: nn.Module = _Loss(network)
        if self._averaged:  # the wrapper averages gradients
            self._several = cast("lightning_fabric.Fabric", fabric)
            self._loss, self._wrapped_optimizer = self._several.setup(self._loss, optimizer)

    def train(self, images: TrainingSet, order: Iterable[Places]) -> float:
        """Take one step per batch; returns the mean loss, NaN without batches."""
        self._loss.train()
        losses = []
        for step, batch in enumerate(order, start=1):
            losses.append(self._step(images, batch))
            if step % STEPS_BETWEEN == 0:
                forget_traces(self.optimizer)
        if not losses:
            return float("nan")
        local = float(torch.stack(losses).mean())
        # The last step follows the last loss, and a saved round replaces the one before, so check the weights too.
        if not all(bool(weight.isfinite().all()) for weight in self._network.parameters()):
            local = float("nan")
        average = mean(self.fabric, local) * (self.fabric.world_size if self._apart else 1)
        if not math.isfinite(average):
            raise PrenError("diverged", "Training diverged: the loss or a weight is not finite. Choose a smaller lr.")
        return average

    def _step(self, images: TrainingSet, whole: Places) -> Tensor:
        fabric = self.fabric
        batch = whole[fabric.global_rank :: fabric.world_size] if self._averaged else whole
        parts = np.array_split(batch, min(self._pieces, len(batch)))
        self.optimizer.zero_grad()
        loss = torch.zeros((), device=fabric.device)
        for part in parts:
            waiting = self._averaged and part is not parts[-1]  # average once, after the last piece
            with self._several.no_backward_sync(self._loss) if waiting else nullcontext():  # type: ignore[arg-type]
                # Gradients are averaged over processes, so weigh each by its part of the batch.
                weight = len(part) * (fabric.world_size if self._averaged else 1) / len(whole)
                piece = self._loss(*images.read(part, fabric.device)) * weight
                if self._averaged:
                    self._several.backward(piece)
                else:
                    piece.backward()
            loss += piece.detach()
        (self._wrapped_optimizer if self._averaged else self.optimizer).step()
        return loss


class _Loss(nn.Module):
    """The loss as a module, because Fabric wraps modules and a network's `forward` gives scores."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return cast(Trainable, self.network).loss(inputs, targets)
