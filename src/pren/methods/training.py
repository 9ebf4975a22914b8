"""What networks that are trained on labelled images and the pool at once have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pren.core.division import State
from pren.core.progressive import batches
from pren.errors import PrenError

Batch = tuple[NDArray[np.int64], NDArray[np.int64]]  # places among the labelled images, and in the pool


def mixed_batches(train: int, pool: int, size: int, count: int, seed: int, epoch: int) -> Iterator[Batch]:
    """Batches of one epoch: half labelled images (the larger half), half images of the pool, each reshuffled apart."""
    ours = batches(train, size - size // 2, count, seed, 2 * epoch)
    theirs = batches(pool, max(size // 2, 1), count, seed, 2 * epoch + 1)
    return zip(ours, theirs, strict=True)


def linear(fan_in: int, fan_out: int, rng: np.random.Generator) -> nn.Linear:
    """A layer initialised as torch's own, but not from torch's global generator."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, fan_in, fan_out)  # type: ignore[no-untyped-call]
    bound = 1 / math.sqrt(fan_in)
    with torch.no_grad():
        for parameter in (layer.weight, layer.bias):
            parameter.copy_(torch.from_numpy(rng.uniform(-bound, bound, size=tuple(parameter.shape))))
    return layer


def checked_mean(losses: list[Tensor], network: nn.Module) -> float:
    """The mean of the losses of some batches; NaN where there were none.

    Raises:
        PrenError: If loss or weights are no longer numbers.
    """
    if not losses:
        return float("nan")
    average = float(torch.stack(losses).mean())
    # The last step comes after the last loss.
    if not math.isfinite(average) or not all(bool(p.isfinite().all()) for p in network.parameters()):
        raise PrenError("Training has diverged: loss or weights are no longer numbers. Take a smaller lr.")
    return average


def adam_tensors(state: State) -> dict[str, Tensor]:
    """Adam's state under names to save it by."""
    return {f"adam.{index}.{key}": value for index, entry in state.items() for key, value in entry.items()}


def read_adam(tensors: dict[str, Tensor], adam: torch.optim.Adam, *, stepped: bool) -> State:
    """The inverse of `adam_tensors`, checked against an optimiser of the same weights.

    Args:
        tensors: What was saved.
        adam: An optimiser that has not stepped yet.
        stepped: Whether the saved one had: before its first step it has no state.

    Raises:
        ValueError: If they do not belong together. (A missing one raises KeyError.)
    """
    entries: State = {}
    parameters = [parameter for group in adam.param_groups for parameter in group["params"]]
    for index, parameter in enumerate(parameters if stepped else []):
        shapes = {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
        entries[index] = {name: tensors[f"adam.{index}.{name}"] for name in shapes}
        if any(entries[index][name].shape != shape for name, shape in shapes.items()):
            raise ValueError("Adam's state is not of the weights' shapes")
        if any(value.dtype != torch.float32 for value in entries[index].values()):
            raise ValueError("Adam's state is not of the weights' type")
    return entries
