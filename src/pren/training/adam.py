"""Adam's state: kept small, saved between two rounds, and believed only if it fits the weights."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.optim import Optimizer

from pren.training.division import AdamState

FORGOTTEN = 1e-30  # what Adam may forget: it would move a weight by less than 1e-3 * 1e-30 / 1e-8
PARTS = ("step", "exp_avg", "exp_avg_sq")


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


def adam_tensors(state: AdamState) -> dict[str, Tensor]:
    """Adam's state under names to save it by."""
    parts = {f"adam.{index}.{key}": value for index, entry in state.items() for key, value in entry.items()}
    return {"adam.weights": torch.tensor(len(state)), **parts}


def read_adam(tensors: dict[str, Tensor], adam: Optimizer) -> AdamState:
    """The inverse of `adam_tensors`, checked against an optimiser of the same weights.

    Raises:
        ValueError: If they do not belong together. (A missing one raises KeyError.)
    """
    entries: AdamState = {}
    weights = [weight for group in adam.param_groups for weight in group["params"]]
    count = int(tensors["adam.weights"])
    if count not in (0, len(weights)):  # none before its first step
        raise ValueError(f"Adam's state is that of {count} weights, not of {len(weights)}")
    for index, weight in enumerate(weights[:count]):
        entries[index] = {name: tensors[f"adam.{index}.{name}"] for name in PARTS}
        for name, value in entries[index].items():
            wanted = torch.Size() if name == "step" else weight.shape
            if value.shape != wanted or value.dtype != torch.float32:
                raise ValueError("Adam's state does not fit the weights")
    return entries
