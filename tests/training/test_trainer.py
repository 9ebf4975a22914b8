"""One trainer for every network: its steps, its loss, pieces of batches, and training that fails."""

import copy

import numpy as np
import pytest
import torch
from refusals import refused
from torch import nn

from pren.core.pseudo import PseudoLabels
from pren.training import trainer
from pren.training.batches import TrainingSet, batches
from pren.training.trainer import Trainer


@pytest.fixture
def training_set(make_inputs, labels):
    """Build the labelled images alone."""

    def build(kind="features", augment=None):
        train, pool = make_inputs(kind)
        nobody = TrainingSet(train, labels, pool, PseudoLabels.none(), augment, np.random.default_rng(0))
        assert len(nobody) == 12
        return nobody

    return build


def adam(network, lr=0.01):
    return torch.optim.Adam(network.parameters(), lr=lr)


def order(count, size=6):
    return batches(12, size, count, seed=0, number=0)


def test_every_step_is_one_of_adams_on_the_loss_of_its_batch(fabric, make_network, training_set, same_bits):
    network, other = make_network(), make_network()
    images = training_set()
    loss = Trainer(fabric, network, adam(network)).train(images, order(7))
    optimizer, losses = adam(other), []
    for batch in order(7):
        x, y = images.read(batch, fabric.device)
        optimizer.zero_grad()
        losses.append(other.loss(x, y))
        losses[-1].backward()
        optimizer.step()
    assert same_bits(network.state_dict(), other.state_dict())
    assert loss == pytest.approx(np.mean([each.item() for each in losses]))
    assert network.batches == other.batches
    assert losses[-1] < losses[0]


def test_training_is_in_training_mode(fabric, make_network, training_set):
    network = make_network().eval()
    Trainer(fabric, network, adam(network)).train(training_set(), order(3))
    assert network.training_mode == [True] * 3


def test_the_state_of_adam_carries_over(fabric, make_network, training_set):
    network = make_network()
    taught = Trainer(fabric, network, adam(network))
    for steps in (3, 6):
        taught.train(training_set(), order(3))
        assert int(taught.optimizer.state[network.ensemble.layers[0].bias]["step"]) == steps


def test_the_loss_of_no_batches_is_no_number(fabric, make_network, training_set, same_bits):
    network = make_network()
    before = copy.deepcopy(network.state_dict())
    assert np.isnan(Trainer(fabric, network, adam(network)).train(training_set(), order(0)))
    assert same_bits(network.state_dict(), before)


@pytest.mark.parametrize(("steps", "times"), [(99, 0), (100, 1), (250, 2)])
def test_adam_forgets_now_and_then(fabric, make_network, training_set, monkeypatch, steps, times):
    forgot = []
    monkeypatch.setattr(trainer, "forget_traces", forgot.append)
    network = make_network()
    optimizer = adam(network)
    Trainer(fabric, network, optimizer).train(training_set(), order(steps, size=1))
    assert forgot == [optimizer] * times


# --- any network


class Line(nn.Module):
    """Anything with a loss can be trained; its `forward` is not asked."""

    def __init__(self, blow_up=None):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(4))
        self.calls, self.blow_up = 0, blow_up

    def loss(self, inputs, targets):
        self.calls += 1
        loss = ((inputs @ self.w - targets) ** 2).mean()
        return loss * float("nan") if self.calls == self.blow_up else loss


def test_any_network_with_a_loss_can_be_trained(fabric, training_set):
    line = Line()
    first, second = (Trainer(fabric, line, adam(line)).train(training_set(), order(20)) for _ in range(2))
    assert 0 < second < first


@pytest.mark.parametrize("blow_up", [1, 3])
def test_a_loss_that_is_no_number_ends_training(fabric, training_set, blow_up):
    line = Line(blow_up)
    with refused("diverged"):
        Trainer(fabric, line, adam(line)).train(training_set(), order(3))


def test_weights_that_are_no_numbers_after_the_last_step_end_training(fabric, training_set):
    line = Line()
    with torch.no_grad():
        line.w.fill_(1e15)  # the loss is a number still, but one step on it is not
    with refused("diverged"):
        Trainer(fabric, line, torch.optim.SGD(line.parameters(), lr=1e38)).train(training_set(), order(1))


# --- pieces of batches, and changes to them


def first_gradients(fabric, network, images, pieces, batch_size):
    """The gradients of the first batch."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    loss = Trainer(fabric, network, optimizer, pieces=pieces).train(images, order(1, batch_size))
    return [weight.grad for weight in network.parameters()], loss


@pytest.mark.parametrize("batch_size", [1, 6, 7])
@pytest.mark.parametrize("pieces", [2, 3, 6, 100])
def test_pieces_add_up_to_the_gradients_of_a_whole_batch(fabric, make_network, training_set, pieces, batch_size):
    images = training_set("images")
    whole, loss = first_gradients(fabric, make_network("images"), images, 1, batch_size)
    network = make_network("images")
    parts, same_loss = first_gradients(fabric, network, images, pieces, batch_size)
    assert any(gradient.abs().max() > 1e-3 for gradient in whole)
    for ours, theirs in zip(parts, whole, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-7)
    assert same_loss == pytest.approx(loss, rel=1e-5)
    sizes = [len(batch) for batch in network.batches]
    assert len(sizes) == min(pieces, batch_size)
    assert sum(sizes) == batch_size
    assert max(sizes) - min(sizes) <= 1


def test_pieces_train_what_whole_batches_train(fabric, make_network, training_set):
    network, other = make_network("images"), make_network("images")
    for each, pieces in ((network, 1), (other, 4)):
        Trainer(fabric, each, adam(each), pieces=pieces).train(training_set("images"), order(15))
    for ours, theirs in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)


def test_what_is_trained_on_is_the_changed_batch(fabric, make_network, training_set):
    network = make_network("images")
    images = training_set("images", lambda images, rng: torch.zeros_like(images))
    Trainer(fabric, network, adam(network)).train(images, order(4))
    assert len(network.batches) == 4
    assert all(image == 0 for batch in network.batches for image, _ in batch)
