"""Fine-tune the last stages of a network (its tail) on the seen classes, from cached inputs of these stages (maps).

A linear classifier on top of the tail is trained with it and then dropped: the tail keeps features that separate such
classes. A fully trained tail is too specific to the seen classes. Weights between the original and the trained ones
serve both seen and unseen classes (Wortsman et al., Robust fine-tuning of zero-shot models, 2022). Held-out classes
decide whether to use them (see `finetuned.py`).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR

from pren.foundation.seeds import stream
from pren.problem import ClassTable
from pren.problem.inputs import Inputs
from pren.training.batches import TrainingSet, batches
from pren.training.processes import Fabric
from pren.training.trainer import Trainer

log = logging.getLogger(__name__)

Targets = Literal["classes", "signatures", "both"]
SPREAD = 0.01  # standard deviation of the classifier's initial weights


class Finetuning(BaseModel):
    """How to fine-tune a tail on the seen classes.

    Attributes:
        targets: What it predicts: the classes, their signatures (an image's class is the one whose signature fits the
            predicted one best), or both.
        strength: From the original weights (0) to the trained ones (1); None for 0.25 if that helps held-out seen
            classes, otherwise 0.
        epochs: Passes over the labelled images.
        lr: AdamW's largest learning rate: it rises for a third of the time and then falls to zero.
        batch_size: Images in a batch.
        dropout: The share of features that is dropped at random before the classifier.
        smoothing: Label smoothing.
        seed: For all random numbers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    targets: Targets = "classes"
    strength: float | None = Field(None, ge=0, le=1)
    epochs: int = Field(4, ge=1)
    lr: float = Field(3e-4, gt=0)
    batch_size: int = Field(64, ge=2, le=10**5)
    dropout: float = Field(0.3, ge=0, lt=1)
    smoothing: float = Field(0.1, ge=0, lt=1)
    seed: int = Field(0, ge=0)


class StageClassifier(nn.Module):
    """A tail with linear classifiers.

    Args:
        tail: (n, ...) -> (n, d).
        width: d.
        signatures: (S, m) of the seen classes.
        plan: How to train it.
    """

    signatures: Tensor

    def __init__(self, tail: nn.Module, width: int, signatures: NDArray[np.float64], plan: Finetuning) -> None:
        super().__init__()
        self.tail = tail
        self.plan = plan
        rng = stream(plan.seed, "finetuning")
        self.classes = _linear(rng, width, len(signatures)) if plan.targets != "signatures" else None
        self.attributes = _linear(rng, width, signatures.shape[1]) if plan.targets != "classes" else None
        self.register_buffer("signatures", torch.from_numpy(_standardised(signatures)).float())
        self.chance = torch.Generator()

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of a batch."""
        features = self._dropped(self.tail(inputs))
        loss = features.new_zeros(())
        if self.classes is not None:
            loss = loss + self._entropy(self.classes(features), targets)
        if self.attributes is not None:
            loss = loss + self._entropy(self.attributes(features) @ self.signatures.T, targets)
        return loss

    def _entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(logits, targets, label_smoothing=self.plan.smoothing)

    def _dropped(self, features: Tensor) -> Tensor:
        """Dropout; torch's own would use torch's global generator."""
        kept = torch.rand(features.shape, generator=self.chance) >= self.plan.dropout
        return features * kept.to(features) / (1 - self.plan.dropout)


def learn_classes(
    tail: nn.Module,
    width: int,
    maps: Inputs,
    labels: NDArray[np.int64],
    classes: ClassTable,
    plan: Finetuning,
    fabric: Fabric,
) -> None:
    """Train a tail in place on the classes that have labelled images.

    Args:
        tail: (n, *sample_shape) -> (n, d), a backbone with fixed BatchNorm statistics.
        width: d.
        maps: N inputs of the tail.
        labels: (N,) their classes.
        classes: The class table.
        plan: How to train it.
        fabric: The device and the processes, which share every batch.
    """
    order = np.argsort(np.array(classes.names), kind="stable")  # the order of the class table has no effect
    seen = order[np.isin(order, labels)]
    place = np.full(len(classes), -1)
    place[seen] = np.arange(len(seen))
    classifier = StageClassifier(tail, width, classes.signatures[seen], plan).to(fabric.device)
    optimizer = torch.optim.AdamW(classifier.parameters(), lr=plan.lr, weight_decay=0.01)
    steps = max(1, len(maps) // plan.batch_size)
    schedule = OneCycleLR(optimizer, plan.lr, total_steps=plan.epochs * steps + 1)
    optimizer.register_step_post_hook(lambda *_: schedule.step())
    trainer = Trainer(fabric, classifier, optimizer)
    mirror = partial(mirrored, axis=mirror_axis(maps.sample_shape))
    for epoch in range(1, plan.epochs + 1):
        classifier.chance.manual_seed(int(stream(plan.seed, "dropout", epoch, fabric.global_rank).integers(2**63)))
        chance = stream(plan.seed, "mirrors", epoch, fabric.global_rank)
        images = TrainingSet.labelled(maps, place[labels], mirror, chance)
        order_of_images = batches(len(maps), min(plan.batch_size, len(maps)), steps, plan.seed, epoch)
        loss = trainer.train(images, order_of_images)
        log.info("Fine-tuning on %d images: epoch %d of %d, loss %.3f.", len(maps), epoch, plan.epochs, loss)


def between(start: dict[str, Tensor], end: dict[str, Tensor], strength: float) -> dict[str, Tensor]:
    """Interpolate between the weights of two tails."""
    return {
        name: torch.lerp(value, end[name], strength) if value.is_floating_point() else value  # BatchNorm counts
        for name, value in start.items()
    }


def mirror_axis(shape: tuple[int, ...]) -> int | None:
    """The W axis in a batch of square maps (C, H, W) or (H, W, C); None if it is unclear, as for transformer tokens."""
    if len(shape) != 3 or len(set(shape)) != 2:
        return None
    return 3 if shape[1] == shape[2] else 2 if shape[0] == shape[1] else None


def mirrored(maps: Tensor, rng: np.random.Generator, axis: int | None) -> Tensor:
    """Mirror a random half of the maps (n, ...) of a batch."""
    if axis is None:
        return maps
    chosen = torch.from_numpy(rng.random(len(maps)) < 0.5).to(maps.device)
    return torch.where(chosen[:, None, None, None], maps.flip(axis), maps)


def _linear(rng: np.random.Generator, inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, device="meta").to_empty(
        device="cpu"
    )  # skips an initialisation with torch's global generator
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(rng.normal(0, SPREAD, (outputs, inputs))))
        layer.bias.zero_()
    return layer


def _standardised(signatures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Signatures (S, m) minus their mean, which has no information, with root mean square length 1."""
    deviations = signatures - signatures.mean(axis=0)
    size = float(np.sqrt((deviations**2).sum(axis=1).mean()))
    standardised: NDArray[np.float64] = deviations / (size or 1.0)
    return standardised
