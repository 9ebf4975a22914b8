"""Layers in kept memory give the bits of plain ones, and nothing changes under anybody's hands."""

import copy

import numpy as np
import pytest
import torch

from pren.core.ensemble import BatchedLinear
from pren.training.kept_memory import KeptLinear

K, N, FAN_IN, FAN_OUT = 3, 7, 4, 5


@pytest.fixture(params=[False, True], ids=["linear", "relu"])
def relu(request):
    return request.param


@pytest.fixture
def layer(relu):
    """A layer in kept memory."""
    return KeptLinear(K, FAN_IN, FAN_OUT, np.random.default_rng(0), relu).double()


@pytest.fixture
def plain(relu):
    """The same as a plain one."""
    return BatchedLinear(K, FAN_IN, FAN_OUT, np.random.default_rng(0), relu).double()


def inputs(seed=0, images=N, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(K, images, FAN_IN, dtype=torch.float64, generator=generator).to(dtype).requires_grad_()


def loss_of(outputs):
    """Something whose gradient differs from head to head, image to image and unit to unit."""
    return (outputs.sin() * torch.arange(1, outputs.numel() + 1).reshape(outputs.shape)).sum()


def same(one, other):
    return (one is None and other is None) or torch.equal(one, other)


def same_gradients(layer, plain):
    return same(layer.weight.grad, plain.weight.grad) and same(layer.bias.grad, plain.bias.grad)


# --- the bits of a plain layer


def test_weights_start_as_those_of_a_plain_layer(layer, plain):
    assert torch.equal(layer.weight, plain.weight)
    assert torch.equal(layer.bias, plain.bias)
    assert list(layer.state_dict()) == ["weight", "bias"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_outputs_and_gradients_are_those_of_a_plain_layer(layer, plain, dtype):
    layer.to(dtype), plain.to(dtype)
    x, again = inputs(dtype=dtype), inputs(dtype=dtype)
    ours, theirs = layer(x), plain(again)
    assert torch.equal(ours, theirs)
    assert ours.requires_grad
    loss_of(ours).backward()
    loss_of(theirs).backward()
    assert torch.equal(x.grad, again.grad)
    assert same_gradients(layer, plain)
    assert layer.weight.grad.abs().max() > 0
    with torch.inference_mode():
        assert torch.equal(layer(x), theirs)
        assert not layer(x).requires_grad


def test_inputs_shared_by_all_heads_collect_the_gradients_of_all(layer, plain):
    x, again = (inputs()[0].detach().requires_grad_() for _ in range(2))
    loss_of(layer(x.expand(K, N, FAN_IN))).backward()
    loss_of(plain(again.expand(K, N, FAN_IN))).backward()
    assert torch.equal(x.grad, again.grad)
    assert same_gradients(layer, plain)


def test_gradients_are_those_of_finite_differences(layer):
    def outputs(x, weight, bias):
        return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,))

    assert torch.autograd.gradcheck(outputs, (inputs(), layer.weight, layer.bias))


def test_gradients_add_up_over_backward_passes_and_uses_in_one_loss(layer, plain):
    for each in (layer, plain):
        loss_of(each(inputs(0))).backward()
        (loss_of(each(inputs(1))) + loss_of(each(inputs(2)))).backward()
    assert same_gradients(layer, plain)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_start_afresh_after_zero_grad(layer, plain, set_to_none):
    loss_of(layer(inputs(0))).backward()
    layer.zero_grad(set_to_none=set_to_none)
    assert layer.weight.grad is None or not layer.weight.grad.any()
    loss_of(layer(inputs(1))).backward()
    loss_of(plain(inputs(1))).backward()
    assert same_gradients(layer, plain)


@pytest.mark.parametrize("frozen", [("weight",), ("bias",), ("weight", "bias")])
def test_what_is_frozen_gets_no_gradient_and_passes_it_on(layer, plain, frozen):
    x, again = inputs(), inputs()
    for each, given in ((layer, x), (plain, again)):
        for name in frozen:
            getattr(each, name).requires_grad_(False)
        loss_of(each(given)).backward()
    assert all(getattr(layer, name).grad is None for name in frozen)
    assert torch.equal(x.grad, again.grad)
    assert same_gradients(layer, plain)


def test_a_weight_that_is_frozen_later_keeps_the_gradient_it_had(layer):
    loss_of(layer(inputs(0))).backward()
    before = layer.weight.grad.clone()
    layer.weight.requires_grad_(False)
    loss_of(layer(inputs(1))).backward()
    assert torch.equal(layer.weight.grad, before)


def test_steps_of_adam_go_where_those_of_a_plain_layer_go(layer, plain):
    before = layer.weight.detach().clone()
    for each in (layer, plain):
        optimizer = torch.optim.Adam(each.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            loss_of(each(inputs(step))).backward()
            optimizer.step()
    assert (layer.weight - before).abs().max() > 0.1
    assert torch.equal(layer.weight, plain.weight)
    assert torch.equal(layer.bias, plain.bias)


# --- memory that is used again must not change under anybody's hands


def test_gradients_that_are_kept_do_not_change(layer):
    x = inputs(0)
    loss_of(layer(x)).backward()
    kept = [layer.weight.grad, layer.bias.grad[0], x.grad[1]]  # views count too
    before = [gradient.clone() for gradient in kept]
    for seed in range(1, 4):
        layer.zero_grad()
        loss_of(layer(inputs(seed))).backward()
    assert all(torch.equal(gradient, expected) for gradient, expected in zip(kept, before, strict=True))


def test_outputs_that_are_kept_do_not_change(layer):
    kept, graph = layer(inputs(0)).detach()[0], layer(inputs(1)).sum()
    before = kept.clone()
    loss_of(layer(inputs(2))).backward()
    graph.backward()
    layer(inputs(3))
    assert torch.equal(kept, before)


def test_graphs_that_live_at_the_same_time_keep_apart(layer, plain):
    x, again = [inputs(0), inputs(1)], [inputs(0), inputs(1)]
    for each, given in ((layer, x), (plain, again)):
        losses = [loss_of(each(one)) for one in given]
        for number in (1, 0, 1):  # the second graph is used twice
            losses[number].backward(retain_graph=True)
    assert same_gradients(layer, plain)
    assert all(torch.equal(ours.grad, theirs.grad) for ours, theirs in zip(x, again, strict=True))


def test_batches_of_different_sizes(layer, plain):
    for images in (7, 3, 0, 5):
        x, again = inputs(images=images), inputs(images=images)
        loss_of(layer(x)).backward()
        loss_of(plain(again)).backward()
        assert torch.equal(x.grad, again.grad)
    assert same_gradients(layer, plain)


def test_the_precision_may_change(layer):
    loss_of(layer(inputs())).backward()
    layer.zero_grad()
    layer.float()
    loss_of(layer(inputs(dtype=torch.float32))).backward()
    assert layer.weight.grad.dtype == torch.float32


def test_the_memory_of_a_step_serves_the_next(layer):
    places = set()
    for seed in range(4):
        layer.zero_grad()
        outputs = layer(inputs(seed))
        loss_of(outputs).backward()
        places.add((outputs.data_ptr(), layer.weight.grad.data_ptr()))
        del outputs
    assert len(places) == 1


def test_a_copy_has_gradients_of_its_own(layer):
    loss_of(layer(inputs(0))).backward()
    other = copy.deepcopy(layer)
    expected = layer.weight.grad.clone()
    for seed in range(2):
        other.zero_grad()
        loss_of(other(inputs(seed))).backward()
    assert torch.equal(layer.weight.grad, expected)
    assert not torch.equal(other.weight.grad, expected)


# --- in an ensemble


def test_an_ensemble_in_kept_memory_has_the_bits_of_a_plain_one(make_ensemble):
    subsets = [[0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]]
    features = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
    targets = torch.tensor([0, 1, 2, 3, 4, 0])
    trained = []
    for linear in (KeptLinear, BatchedLinear):
        ensemble = make_ensemble(subsets, linear=linear)
        optimizer = torch.optim.Adam(ensemble.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            losses.append(ensemble.loss(features, targets))
            losses[-1].backward()
            optimizer.step()
        trained.append((torch.stack(losses), ensemble.state_dict()))
    (our_losses, ours), (losses, theirs) = trained
    assert torch.equal(our_losses, losses)
    assert losses[-1] < losses[0]
    assert all(torch.equal(ours[name], value) for name, value in theirs.items())
