"""What Adam forgets, and what is believed of a saved state."""

import numpy as np
import pytest
import torch
from torch import nn

from pren.training import trainer
from pren.training.adam import adam_tensors, forget_traces, read_adam
from pren.training.batches import TrainingSet, batches
from pren.training.trainer import Trainer


def adam_after(steps, *shapes):
    """An optimiser that has taken some steps."""
    weights = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    optimizer = torch.optim.Adam(weights)
    for step in range(steps):
        for weight in weights:
            weight.grad = torch.full(weight.shape, float(step + 1))
        optimizer.step()
    return optimizer


# --- forgetting


def test_only_what_has_vanished_is_forgotten():
    optimizer = adam_after(1, 6)
    (state,) = optimizer.state.values()
    values = torch.tensor([1e-40, -1e-31, 1e-29, -1e-29, 0.0, -3.0])
    state["exp_avg"].copy_(values)
    squares = state["exp_avg_sq"].clone()
    forget_traces(optimizer)
    assert state["exp_avg"].tolist() == [float(v) if abs(v) > 1e-30 else 0.0 for v in values]
    assert state["exp_avg_sq"].equal(squares)


def test_an_optimiser_without_a_state_has_nothing_to_forget():
    optimizer = adam_after(0, 3)
    forget_traces(optimizer)
    assert not any(optimizer.state.values())


def test_forgetting_changes_no_weight(fabric, make_network, make_inputs, labels, monkeypatch):
    """A head with dead units, trained until their averages would be denormal numbers."""

    def trained():
        network = make_network()
        optimizer = torch.optim.Adam(network.parameters(), lr=0.1, fused=True)
        train, pool = make_inputs()
        images = TrainingSet.with_pool(train, labels, pool)
        Trainer(fabric, network, optimizer).train(images, batches(len(train), 6, 1000, 0, 0))
        averages = torch.cat([entry["exp_avg"].flatten().abs() for entry in optimizer.state.values()])
        tiny = torch.finfo(torch.float32).tiny
        return network, bool(((averages > 0) & (averages < tiny)).any())

    with_forgetting, denormal = trained()
    assert not denormal
    monkeypatch.setattr(trainer, "forget_traces", lambda optimizer: None)
    without, denormal = trained()
    assert denormal  # or the test would show nothing
    for ours, theirs in zip(with_forgetting.parameters(), without.parameters(), strict=True):
        assert ours.equal(theirs)


# --- saving


@pytest.mark.parametrize("steps", [0, 3])
def test_a_state_comes_back_as_it_was(steps):
    optimizer = adam_after(steps, (2, 3), (4,))
    state = optimizer.state_dict()["state"]
    tensors = adam_tensors(state)
    assert len(tensors) == (7 if steps else 1)  # and how many weights it is of
    back = read_adam({**tensors, "round.number": torch.tensor(1)}, adam_after(0, (2, 3), (4,)))
    assert back.keys() == state.keys()
    for index, entry in state.items():
        assert back[index].keys() == entry.keys()
        assert all(torch.equal(back[index][name], value) for name, value in entry.items())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("adam.0.exp_avg", torch.zeros(3, 2)),
        ("adam.1.exp_avg_sq", torch.zeros(5)),
        ("adam.1.exp_avg", torch.zeros(4, dtype=torch.float64)),
        ("adam.0.step", torch.zeros(1)),
        ("adam.0.step", torch.tensor(3)),
    ],
)
def test_a_state_that_does_not_fit_is_refused(name, value):
    tensors = adam_tensors(adam_after(2, (2, 3), (4,)).state_dict()["state"])
    assert name in tensors
    with pytest.raises(ValueError, match="does not fit"):
        read_adam({**tensors, name: value}, adam_after(0, (2, 3), (4,)))


def test_a_state_with_a_part_missing_is_refused():
    tensors = adam_tensors(adam_after(2, (2, 3), (4,)).state_dict()["state"])
    for name in tensors:
        rest = {key: value for key, value in tensors.items() if key != name}
        with pytest.raises(KeyError):
            read_adam(rest, adam_after(0, (2, 3), (4,)))


def test_a_state_goes_on_where_it_was():
    """Two steps and then one more are three, also with the state read back in between."""
    whole, rest = adam_after(3, (2,)), adam_after(2, (2,))
    weight = nn.Parameter(rest.param_groups[0]["params"][0].detach().clone())
    optimizer = torch.optim.Adam([weight])
    state = read_adam(adam_tensors(rest.state_dict()["state"]), optimizer)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    weight.grad = torch.full((2,), 3.0)
    optimizer.step()
    assert torch.equal(weight, whole.param_groups[0]["params"][0])
    assert np.all(weight.detach().numpy() < 0)
