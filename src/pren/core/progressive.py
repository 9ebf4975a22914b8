"""Algorithm 1: train on the seen classes, then again and again on them and the freshest pseudo-labels.

`progressive_training` is a generator: it hands out its state after every round, so saving, logging, progress and
resuming stay outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from pren.core.division import hand_weights_round
from pren.core.ensemble import Network
from pren.core.pseudo import PseudoLabels, select
from pren.core.voting import CHUNK_IMAGES, GzslRule, chunk_size, gzsl_scores, zsl_scores
from pren.errors import PrenError
from pren.inputs import Inputs
from pren.processes import mean, over_chunks, share_weights
from pren.seeds import stream

Augment = Callable[[Tensor, np.random.Generator], Tensor]  # changes the images of a batch at random
FORGOTTEN = 1e-30  # what Adam may forget: it would move a weight by less than 1e-3 * 1e-30 / 1e-8
STEPS_BETWEEN = 100  # 0.9^100 brings no number from there to where denormal ones begin
# At most how many numbers go through a backbone at once when it predicts. On a CPU, memory for large activations is
# handed out page by page and anew each time, which is twice as slow as for a few images.
CHUNK_PIXELS, CHUNK_PIXELS_ON_CPU = 10_000_000, 1_250_000


@dataclass(frozen=True)
class Schedule:
    """How long to train, and on what.

    Attributes:
        rounds: MaxIter.
        initial_batches: Batches on the seen classes alone, before the first round.
        batches: Batches in every round.
        batch_size: Images in a batch.
        pieces: How many a batch is cut into, whose gradients are added up, where a whole one needs too much memory.
        per_class: N_pseudo.
        first_rounds: GZSL: how many rounds give pseudo-labels to unseen classes only. None: all of them (ZSL).
        gzsl_rule: GZSL: how seen and unseen classes are compared in later rounds.
        gamma: GZSL: taken off the scores of seen classes.
        seed: For the order of the batches, and for what `augment` does to them.
    """

    rounds: int
    initial_batches: int
    batches: int
    batch_size: int
    pieces: int
    per_class: int
    first_rounds: int | None
    gzsl_rule: GzslRule
    gamma: float
    seed: int


@dataclass(frozen=True, eq=False)
class Round:
    """What a round did.

    Attributes:
        number: 0 for the training on the seen classes, then 1 to MaxIter.
        loss: The mean over its batches.
        pseudo: The pseudo-labels it trained on.
        changed: How many of them the round before did not have.
    """

    number: int
    loss: float
    pseudo: PseudoLabels
    changed: int


def progressive_training(
    fabric: Fabric,
    network: Network,
    trained: Network,
    optimizer: Optimizer,
    train: Inputs,
    labels: NDArray[np.int64],
    pool: Inputs,
    schedule: Schedule,
    last: Round | None = None,
    augment: Augment | None = None,
) -> Iterator[Round]:
    """Run Algorithm 1.

    Args:
        fabric: Knows the device and the processes.
        network: Backbone and heads; trained in place.
        trained: What this process trains: the network itself, or its `own_heads` where processes share them.
        optimizer: Over the weights of `trained`; its state carries over from round to round.
        train: D_s.
        labels: (N,) classes of D_s, numbered as the network's.
        pool: The unlabelled images.
        schedule: Rounds, batches, pseudo-labels.
        last: The last round that was finished, to go on after it with the network and optimiser it left.
        augment: What to do to the images of a batch before it is trained on.

    Yields:
        Each round when it is done.
    """
    apart = trained is not network
    # Several processes with the same weights: a wrapper that averages gradients. Otherwise the network itself.
    model, optimizer = (trained, optimizer) if apart else fabric.setup(network, optimizer)

    def train_on(pseudo: PseudoLabels, number: int) -> float:
        count = schedule.batches if number else schedule.initial_batches
        order = batches(len(train) + len(pseudo), schedule.batch_size, count, schedule.seed, number)
        chance = stream(schedule.seed, "augmentation", number, fabric.global_rank)
        inputs = _TrainingSet(train, labels, pool, pseudo, augment, chance, fabric.device)
        loss = _train(fabric, model, optimizer, inputs, order, apart, schedule.pieces)
        if apart:
            hand_weights_round(fabric, network)
        else:
            share_weights(fabric, network)  # BatchNorm has seen another part of the last batch in every process
        return loss

    if last is None:
        loss = train_on(PseudoLabels.none(), 0)
        last = Round(0, loss, PseudoLabels.none(), 0)
        yield last
    for number in range(last.number + 1, schedule.rounds + 1):
        pseudo = pseudo_labels(fabric, network, pool, schedule, number)
        loss = train_on(pseudo, number)
        last = Round(number, loss, pseudo, pseudo.changed_since(last.pseudo))
        yield last


def batches(images: int, size: int, count: int, seed: int, number: int) -> Iterator[NDArray[np.int64]]:
    """The batches of a round: reshuffled passes over its training set, one after the other, cut into equal pieces."""
    rng = stream(seed, "batches", number)
    waiting = np.empty(0, dtype=np.int64)
    for _ in range(count):
        passes = -(-(size - len(waiting)) // images)  # as many as fill the batch
        waiting = np.concatenate([waiting, *(rng.permutation(images) for _ in range(passes))])
        yield waiting[:size]
        waiting = waiting[size:]


@dataclass(frozen=True, eq=False)
class _TrainingSet:
    """D_s ∪ D_pseudo of one round."""

    train: Inputs
    labels: NDArray[np.int64]
    pool: Inputs
    pseudo: PseudoLabels
    augment: Augment | None
    chance: np.random.Generator
    device: torch.device

    def __getitem__(self, places: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Inputs and their classes, on the device."""
        ours, theirs = places[places < len(self.train)], places[places >= len(self.train)] - len(self.train)
        x = torch.cat([self.train[ours], self.pool[self.pseudo.images[theirs]]]).to(self.device)
        y = torch.from_numpy(np.concatenate([self.labels[ours], self.pseudo.labels[theirs]])).to(self.device)
        return (x if self.augment is None else self.augment(x, self.chance)), y


def _train(
    fabric: Fabric,
    model: nn.Module,
    optimizer: Optimizer,
    inputs: _TrainingSet,
    order: Iterator[NDArray[np.int64]],
    apart: bool,
    pieces: int,
) -> float:
    """Train on D_s ∪ D_pseudo, one step per batch, and return the mean loss of all heads.

    Of several processes, each trains on its part of a batch, or heads of its own on all of it.
    """
    model.train()
    averaged = fabric.world_size > 1 and not apart
    losses = []
    for step, whole in enumerate(order, start=1):
        batch = whole[fabric.global_rank :: fabric.world_size] if averaged else whole
        parts = np.array_split(batch, min(pieces, len(batch)))
        optimizer.zero_grad()
        loss = torch.zeros((), device=fabric.device)
        for part in parts:
            # Averaging can wait for the last piece.
            waiting = averaged and part is not parts[-1]
            with fabric.no_backward_sync(model) if waiting else nullcontext():  # type: ignore[arg-type]
                # Gradients are averaged over the processes; one with a larger part of the batch counts for more.
                weight = len(part) * (fabric.world_size if averaged else 1) / len(whole)
                piece = model(*inputs[part]) * weight
                fabric.backward(piece)
            loss += piece.detach()
        optimizer.step()
        losses.append(loss)
        if step % STEPS_BETWEEN == 0:
            forget_traces(optimizer)
    if not losses:
        return float("nan")
    local = float(torch.stack(losses).mean())
    # The last step comes after the last loss, and a round that is saved takes the place of the one before.
    if not all(bool(parameter.isfinite().all()) for parameter in model.parameters()):
        local = float("nan")
    average = mean(fabric, local) * (fabric.world_size if apart else 1)
    if not math.isfinite(average):
        raise PrenError("Training has diverged: loss or weights are no longer numbers. Take a smaller lr.")
    return average


def forget_traces(optimizer: Optimizer) -> None:
    """Set Adam's averages of gradients to zero where they have all but vanished.

    Of units that a ReLU has cut off for good, only 0.9^t of the last gradient is left. After some 800 steps that is a
    denormal number, with which processors are ten times slower and more. No weight changes by it.
    """
    for group in optimizer.param_groups:
        for weight in group["params"]:
            average = optimizer.state[weight].get("exp_avg")
            if average is not None:
                torch.hardshrink(average, FORGOTTEN, out=average)


def pseudo_labels(fabric: Fabric, network: Network, pool: Inputs, schedule: Schedule, number: int) -> PseudoLabels:
    """The pseudo-labels of one round.

    In ZSL, and in the first rounds of GZSL, only unseen classes get any: compared with seen classes from the start,
    they could come away empty-handed, and the loop would never begin.
    """
    unseen = network.ensemble.subsets.any(dim=0).cpu().numpy()
    if schedule.first_rounds is None or number <= schedule.first_rounds:
        scores = predict(fabric, network, pool)
        return select(scores, unseen, schedule.per_class)
    scores = predict(fabric, network, pool, schedule.gzsl_rule, schedule.gamma)
    return select(scores, np.ones_like(unseen), schedule.per_class)


def predict(
    fabric: Fabric, network: Network, inputs: Inputs, rule: GzslRule | None = None, gamma: float = 0.0
) -> NDArray[np.float64]:
    """Score images in chunks, with the network in evaluation mode.

    Returns:
        (N, L): `zsl_scores`, or `gzsl_scores` where a rule is given.
    """
    network.eval()

    def score(chunk: Tensor) -> Tensor:
        raw = network.ensemble(network.backbone(chunk))
        if rule is None:
            return zsl_scores(network.ensemble, raw)
        return gzsl_scores(network.ensemble, raw, rule, gamma)

    return over_chunks(fabric, inputs, min(images_at_once(inputs, fabric), chunk_size(network.ensemble)), score)


def images_at_once(inputs: Inputs, fabric: Fabric) -> int:
    """How many inputs can go through a backbone at once, when nothing has to be remembered for gradients."""
    most = CHUNK_PIXELS_ON_CPU if fabric.device.type == "cpu" else CHUNK_PIXELS
    return max(1, min(CHUNK_IMAGES, most // math.prod(inputs.sample_shape)))
