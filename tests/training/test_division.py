"""Heads dealt out to processes, as each of them would do it; `tests/several` has real processes."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from pren.core.voting import Network
from pren.training.division import heads_of, own_heads, own_state, trains_heads_apart
from pren.training.kept_memory import KeptLinear

HEADS = 5
TARGETS = torch.tensor([0, 1, 2])


@dataclass
class Place:
    """What a process knows of itself."""

    global_rank: int
    world_size: int


@pytest.fixture
def network(make_ensemble):
    return Network(nn.Identity(), make_ensemble([[0, 1, 1]] * HEADS, linear=KeptLinear))


@pytest.fixture(scope="module")
def x():
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
def test_every_head_has_one_process_and_every_process_a_head(network, processes):
    parts = [range(HEADS)[heads_of(Place(0, processes), network, rank)] for rank in range(processes)]
    assert [head for part in parts for head in part] == list(range(HEADS))
    assert min(map(len, parts)) >= 1
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(("processes", "apart"), [(1, False), (2, True), (5, True), (6, False)])
def test_heads_are_trained_apart_where_each_process_gets_one(network, processes, apart):
    assert trains_heads_apart(Place(0, processes), network) is apart
    assert not trains_heads_apart(Place(0, processes), Network(nn.Linear(4, 4), network.ensemble))


def test_what_trains_a_part_trains_the_whole(network, x):
    """Two processes' steps, one after the other in the same memory, are the steps of one process."""
    alone = Network(nn.Identity(), own_heads(Place(0, 1), network).ensemble)
    alone.load_state_dict({name: value.clone() for name, value in alone.state_dict().items()}, assign=True)
    optimizer = torch.optim.Adam(alone.parameters())
    alone.loss(x, TARGETS).backward()
    optimizer.step()
    before = network.ensemble(x).detach().clone()
    for rank in range(2):
        place = Place(rank, 2)
        part, heads = own_heads(place, network), heads_of(place, network, rank)
        assert torch.equal(part.ensemble(x), before[heads])
        mine = torch.optim.Adam(part.parameters())
        part.loss(x, TARGETS).backward()
        mine.step()
        assert torch.equal(part.ensemble(x), network.ensemble(x)[heads])
        assert torch.equal(part.ensemble.subsets, network.ensemble.subsets[heads])
        for index, entry in own_state(place, network, optimizer.state_dict()["state"]).items():
            for name, value in mine.state_dict()["state"][index].items():
                assert torch.allclose(entry[name], value)
    assert not torch.allclose(network.ensemble(x), before)
    assert torch.allclose(network.ensemble(x), alone.ensemble(x), atol=1e-6)
