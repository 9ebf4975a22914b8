"""Adam's state: tiny values set to zero, saved between rounds, and checked against the weights when it is read."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.optim import Optimizer

from pren.training.division import AdamState

FORGOTTEN = 1e-30  # smaller averages would move a weight by less than 1e-3 * 1e-30 / 1e-8
PARTS = ("step", "exp_avg", "exp_avg_sq")


def forget_traces(optimizer: Optimizer) -> None:
    """Set Adam's averages of gradients to zero where they are tiny.

    A unit that a ReLU always sets to zero keeps only 0.9^t of its last gradient. After some 800 steps that is a
    denormal number, which makes processors at least ten times slower. No weight changes by this.
    """
    for group in optimizer.param_groups:
        for weight in group["params"]:
            average = optimizer.state[weight].get("exp_avg")
            if average is not None:
                torch.hardshrink(average, FORGOTTEN, out=average)


def adam_tensors(state: AdamState) -> dict[str, Tensor]:
    """Adam's state as named tensors, for saving."""
    parts = {f"adam.{index}.{key}": value for index, entry in state.items() for key, value in entry.items()}
    return {"adam.weights": torch.tensor(len(state)), **parts}


def read_adam(tensors: dict[str, Tensor], adam: Optimizer) -> AdamState:
    """The inverse of `adam_tensors`; ValueError if the state does not fit the weights, KeyError if one is missing."""
    entries: AdamState = {}
    weights = [weight for group in adam.param_groups for weight in group["params"]]
    count = int(tensors["adam.weights"])
    if count not in (0, len(weights)):  # Adam has no state before its first step
        raise ValueError(f"Adam's state is for {count} weights, not {len(weights)}")
    for index, weight in enumerate(weights[:count]):
        entries[index] = {name: tensors[f"adam.{index}.{name}"] for name in PARTS}
        for name, value in entries[index].items():
            wanted = torch.Size() if name == "step" else weight.shape
            if value.shape != wanted or value.dtype != torch.float32:
                raise ValueError("Adam's state does not fit the weights")
    return entries
