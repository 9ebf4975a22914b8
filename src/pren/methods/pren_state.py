"""What a fit of PrEN leaves between two rounds, and what a saved PrEN must look like to be believed."""

from __future__ import annotations

import torch
from torch import Tensor

from pren.core.division import State
from pren.core.progressive import Round
from pren.core.pseudo import PseudoLabels
from pren.errors import PrenError
from pren.methods.training import adam_tensors, read_adam


def training_state(done: Round, adam: State) -> dict[str, Tensor]:
    """Adam's state and the last round, as tensors."""
    state = adam_tensors(adam)
    state["round.number"] = torch.tensor(done.number)
    state["round.loss"] = torch.tensor(done.loss, dtype=torch.float64)
    state["round.images"] = torch.from_numpy(done.pseudo.images)
    state["round.labels"] = torch.from_numpy(done.pseudo.labels)
    state["round.changed"] = torch.tensor(done.changed)
    return state


def read_training_state(
    state: dict[str, Tensor], optimizer: torch.optim.Adam, rounds: int, stepped_at_once: bool, steps: bool
) -> tuple[Round, State]:
    """The inverse of `training_state`, checked.

    Args:
        state: The tensors.
        optimizer: One of all weights, fresh.
        rounds: How many there are to be.
        stepped_at_once: Whether training has batches before the first round.
        steps: Whether it has any in a round.

    Raises:
        PrenError: If they are damaged or belong to another model.
    """
    try:
        number = int(state["round.number"])
        if not 0 <= number <= rounds:
            raise ValueError(f"there is no round {number}")
        entries = read_adam(state, optimizer, stepped=stepped_at_once or (number > 0 and steps))
        images, labels = state["round.images"], state["round.labels"]
        if images.shape != labels.shape or images.ndim != 1:
            raise ValueError("not every pseudo-label has an image")
        if images.dtype != torch.int64 or labels.dtype != torch.int64:
            raise ValueError("pseudo-labels are not whole numbers")
        pseudo = PseudoLabels(images.numpy(), labels.numpy())
        last = Round(number, float(state["round.loss"]), pseudo, int(state["round.changed"]))
    except (KeyError, ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise PrenError(f"The state of training is damaged or belongs to another model: {error}") from error
    return last, entries


def check_ensemble(
    tensors: dict[str, Tensor], hidden: tuple[int, ...], sample_shape: tuple[int, ...], unseen: Tensor
) -> None:
    """Refuse saved weights that cannot be an ensemble's, before anything is built.

    Numbers in a file must not make us ask for more memory than the file itself is.

    Args:
        tensors: By the names of the network's state.
        hidden: Widths of the hidden layers.
        sample_shape: Of an input.
        unseen: (L,) which classes are, in the order of their names.

    Raises:
        ValueError: Saying what is wrong. (KeyError means the same.)
    """
    vectors, subsets = tensors["ensemble.embeddings"], tensors["ensemble.subsets"]
    widths = [tensors[f"ensemble.layers.{layer}.bias"].shape[-1] for layer in range(len(hidden))]
    if widths != list(hidden):
        raise ValueError("hidden layers are not those of the weights")
    heads, classes = subsets.shape
    if subsets.dtype != torch.bool or vectors.dtype != torch.float32 or classes != len(unseen):
        raise ValueError("label embeddings or subsets are of the wrong kind")
    if vectors.shape != (heads, vectors.shape[1], classes):
        raise ValueError(f"label embeddings cannot be of shape {tuple(vectors.shape)}")
    if not torch.equal(subsets.any(dim=0), unseen):
        raise ValueError("the heads do not vote on the unseen classes")
    if sample_shape[0] > sum(tensor.numel() for tensor in tensors.values()):
        raise ValueError(f"inputs cannot be of shape {sample_shape}")
    before = None if len(sample_shape) > 1 else sample_shape[0]
    for layer, width in enumerate([*hidden, vectors.shape[1]]):
        weight = tensors[f"ensemble.layers.{layer}.weight"]
        if weight.shape != (heads, weight.shape[1] if before is None else before, width):
            raise ValueError(f"weights of layer {layer} cannot be of shape {tuple(weight.shape)}")
        before = width
