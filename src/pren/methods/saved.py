"""Reading saved tensors back: nothing of another shape or type gets into a model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pren.methods.features import Matrix


def matrix(tensors: dict[str, Tensor], name: str, *shape: int) -> Matrix:
    """The tensor of that name as an array in double precision.

    Raises:
        ValueError: If it is of another shape or type. (A missing one raises KeyError.)
    """
    tensor = tensors[name]
    if tensor.shape != shape or tensor.dtype != torch.float64:
        raise ValueError(f"{name} is {tensor.dtype} {tuple(tensor.shape)}, not float64 {shape}")
    return tensor.numpy()


def load_weights(network: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give a network its saved weights.

    Raises:
        ValueError: If one is missing, too many, or of another shape or type.
    """
    wanted = network.state_dict()
    if wanted.keys() != tensors.keys():
        raise ValueError(f"weights are {sorted(tensors)}, not {sorted(wanted)}")
    for name, empty in wanted.items():
        tensor = tensors[name]
        if tensor.dtype != empty.dtype or tensor.shape != empty.shape:
            raise ValueError(f"{name} is {tensor.dtype} {tuple(tensor.shape)}, not {empty.dtype} {tuple(empty.shape)}")
    network.load_state_dict(tensors)
