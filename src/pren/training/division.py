"""How several processes divide the training of one network.

If the backbone is trained, every process trains all weights on its part of each batch, and gradients are averaged in
each step. If not, heads share nothing but the vote: every process trains some heads on whole batches, and the processes
exchange weights once a round. No sum runs over processes, so results only differ where a tensor of fewer heads is
rounded differently by the processor's vector instructions.
"""

from __future__ import annotations

import copy

from torch import Tensor, distributed, nn
from torch.optim import Optimizer

from pren.core.ensemble import Ensemble
from pren.core.voting import Network
from pren.training.processes import Fabric

AdamState = dict[int, dict[str, Tensor]]  # by the number of a weight and the name of the value


def trains_heads_apart(fabric: Fabric, network: Network) -> bool:
    """Whether processes divide the heads: the backbone has no weights, and there is a head for each process."""
    return 1 < fabric.world_size <= len(network.ensemble.embeddings) and not list(network.backbone.parameters())


def own_heads(fabric: Fabric, network: Network) -> Network:
    """The heads that this process trains, as a network that shares memory with the whole."""
    return Network(network.backbone, _some_heads(network.ensemble, heads_of(fabric, network, fabric.global_rank)))


def heads_of(fabric: Fabric, network: Network, rank: int) -> slice:
    """Which heads a process trains."""
    total, processes = len(network.ensemble.embeddings), fabric.world_size
    return slice(total * rank // processes, total * (rank + 1) // processes)


def exchange(fabric: Fabric, network: Network, value: Tensor) -> None:
    """Fill in a tensor (K, ...), complete for this process's heads, the values of the other processes' heads."""
    for rank in range(fabric.world_size):
        distributed.broadcast(value[heads_of(fabric, network, rank)], rank)


def exchange_weights(fabric: Fabric, network: Network) -> None:
    """Give every process the weights of all heads."""
    for weight in network.ensemble.parameters():
        exchange(fabric, network, weight.data)


def _some_heads(ensemble: Ensemble, heads: slice) -> Ensemble:
    part = copy.deepcopy(ensemble)
    for layer, whole in zip(part.layers, ensemble.layers, strict=True):
        for name, weight in whole.named_parameters():
            setattr(layer, name, nn.Parameter(weight.data[heads]))  # a view: training the part trains the whole
    part.embeddings, part.subsets = ensemble.embeddings[heads], ensemble.subsets[heads]
    return part


def whole_state(fabric: Fabric, network: Network, optimizer: Optimizer) -> AdamState:
    """The optimiser state of all heads, in every process, as a single optimiser would have it."""
    own = heads_of(fabric, network, fabric.global_rank)
    weights = list(network.ensemble.parameters())
    state: AdamState = copy.deepcopy(optimizer.state_dict()["state"])
    for index, entry in state.items():
        for name, value in entry.items():
            if value.dim():  # not the count of steps, which is the same in all processes
                entry[name] = value.new_empty(weights[index].shape)
                entry[name][own] = value
                exchange(fabric, network, entry[name])
    return state


def own_state(fabric: Fabric, network: Network, state: AdamState) -> AdamState:
    """The part of `whole_state` for the heads of this process."""
    own = heads_of(fabric, network, fabric.global_rank)
    return {
        index: {name: value[own] if value.dim() else value for name, value in entry.items()}
        for index, entry in state.items()
    }
