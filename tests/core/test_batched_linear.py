"""K linear layers as one against K of torch's own, one by one."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from pren.engine.kept_memory import BatchedLinear

K, N, FAN_IN, FAN_OUT = 3, 7, 4, 5


@pytest.fixture
def layer():
    return BatchedLinear(K, FAN_IN, FAN_OUT, np.random.default_rng(0)).double()


def one_by_one(layer):
    """The same K layers as torch has them."""
    heads = []
    for W, b in zip(layer.weight.detach(), layer.bias.detach(), strict=True):
        head = nn.Linear(W.shape[0], W.shape[1]).to(W.dtype)
        head.weight.data, head.bias.data = W.T.clone(), b[0].clone()
        heads.append(head)
    return heads


def inputs(seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(K, N, FAN_IN, dtype=torch.float64, generator=generator).requires_grad_(**options)


def loss_of(outputs):
    """Something whose gradient differs from head to head, image to image and unit to unit."""
    return (outputs.sin() * torch.arange(1, outputs.numel() + 1).reshape(outputs.shape)).sum()


def backward_one_by_one(heads, x):
    loss_of(torch.stack([head(images) for head, images in zip(heads, x, strict=True)])).backward()


def assert_gradients_match(layer, heads):
    for k, head in enumerate(heads):
        assert torch.allclose(layer.weight.grad[k], head.weight.grad.T)
        assert torch.allclose(layer.bias.grad[k, 0], head.bias.grad)


@pytest.mark.parametrize("grad", [True, False])
def test_outputs_are_those_of_each_head(layer, grad):
    x = inputs(requires_grad=grad)
    with torch.set_grad_enabled(grad):
        outputs = layer(x)
    assert outputs.shape == (K, N, FAN_OUT)
    assert outputs.requires_grad == grad
    for k, head in enumerate(one_by_one(layer)):
        assert torch.allclose(outputs[k], head(x[k]))


def test_gradients_are_those_of_each_head(layer):
    heads = one_by_one(layer)
    x, again = inputs(), inputs()
    loss_of(layer(x)).backward()
    backward_one_by_one(heads, again)
    assert_gradients_match(layer, heads)
    assert torch.allclose(x.grad, again.grad)


def test_inputs_shared_by_all_heads_collect_the_gradients_of_all(layer):
    heads = one_by_one(layer)
    x, again = inputs()[0].detach().requires_grad_(), inputs()[0].detach().requires_grad_()
    loss_of(layer(x.expand(K, N, FAN_IN))).backward()
    backward_one_by_one(heads, again.expand(K, N, FAN_IN))
    assert_gradients_match(layer, heads)
    assert torch.allclose(x.grad, again.grad)


@pytest.mark.parametrize("relu", [False, True])
def test_gradients_are_those_of_finite_differences(layer, relu):
    def outputs(x, weight, bias):
        return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,))

    layer.relu = relu
    assert torch.autograd.gradcheck(outputs, (inputs(), layer.weight, layer.bias))


def test_gradients_add_up_over_two_backward_passes(layer):
    heads = one_by_one(layer)
    for seed in range(2):
        loss_of(layer(inputs(seed))).backward()
        backward_one_by_one(heads, inputs(seed))
    assert_gradients_match(layer, heads)


def test_gradients_add_up_over_two_uses_in_one_loss(layer):
    heads = one_by_one(layer)
    (loss_of(layer(inputs(0))) + loss_of(layer(inputs(1)))).backward()
    for seed in range(2):
        backward_one_by_one(heads, inputs(seed))
    assert_gradients_match(layer, heads)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_start_afresh_after_zero_grad(layer, set_to_none):
    heads = one_by_one(layer)
    loss_of(layer(inputs(0))).backward()
    layer.zero_grad(set_to_none=set_to_none)
    assert layer.weight.grad is None or not layer.weight.grad.any()
    loss_of(layer(inputs(1))).backward()
    backward_one_by_one(heads, inputs(1))
    assert_gradients_match(layer, heads)


def test_a_frozen_weight_gets_no_gradient(layer):
    heads = one_by_one(layer)
    layer.weight.requires_grad_(False)
    x, again = inputs(), inputs()
    loss_of(layer(x)).backward()
    backward_one_by_one(heads, again)
    assert layer.weight.grad is None
    assert torch.allclose(layer.bias.grad[:, 0], torch.stack([head.bias.grad for head in heads]))
    assert torch.allclose(x.grad, again.grad)


def test_a_weight_that_is_frozen_later_keeps_the_gradient_it_had(layer):
    loss_of(layer(inputs(0))).backward()
    before = layer.weight.grad.clone()
    layer.weight.requires_grad_(False)
    loss_of(layer(inputs(1))).backward()
    assert torch.equal(layer.weight.grad, before)


def test_a_frozen_layer_passes_the_gradient_on(layer):
    heads = one_by_one(layer)
    layer.requires_grad_(False)
    x, again = inputs(), inputs()
    loss_of(layer(x)).backward()
    backward_one_by_one(heads, again)
    assert layer.weight.grad is None
    assert layer.bias.grad is None
    assert torch.allclose(x.grad, again.grad)


def test_nothing_is_recorded_without_gradients(layer):
    with torch.inference_mode():
        assert not layer(inputs()).requires_grad
    assert layer.weight.grad is None


def test_two_adam_steps_move_each_head_as_torch_would(layer):
    heads = one_by_one(layer)
    ours = torch.optim.Adam(layer.parameters(), lr=0.1)
    theirs = [torch.optim.Adam(head.parameters(), lr=0.1) for head in heads]
    before = layer.weight.detach().clone()
    for step in range(2):
        ours.zero_grad()
        loss_of(layer(inputs(step))).backward()
        ours.step()
        for optimizer in theirs:
            optimizer.zero_grad()
        backward_one_by_one(heads, inputs(step))
        for optimizer in theirs:
            optimizer.step()
    assert (layer.weight - before).abs().min() > 0.01
    for k, head in enumerate(heads):
        assert torch.allclose(layer.weight[k], head.weight.T)
        assert torch.allclose(layer.bias[k, 0], head.bias)


# --- with a ReLU


@pytest.mark.parametrize("grad", [True, False])
def test_a_relu_cuts_what_is_negative(layer, grad):
    with torch.set_grad_enabled(grad):
        plain = layer(inputs()).detach().clone()
        layer.relu = True
        assert torch.equal(layer(inputs()), plain.relu())
    assert (plain < 0).any()


def test_the_gradients_behind_a_relu_are_those_of_each_head(layer):
    heads = [nn.Sequential(head, nn.ReLU()) for head in one_by_one(layer)]
    layer.relu = True
    for seed in range(2):
        x, again = inputs(seed), inputs(seed)
        loss_of(layer(x)).backward()
        backward_one_by_one(heads, again)
        assert torch.allclose(x.grad, again.grad)
    assert_gradients_match(layer, [head[0] for head in heads])


# --- memory that is used again must not change under anybody's hands


@pytest.mark.parametrize("relu", [False, True])
def test_gradients_that_are_kept_do_not_change(layer, relu):
    layer.relu = relu
    x = inputs(0)
    loss_of(layer(x)).backward()
    kept = [layer.weight.grad, layer.bias.grad[0], x.grad[1]]  # views count too
    before = [gradient.clone() for gradient in kept]
    for seed in range(1, 4):
        layer.zero_grad()
        loss_of(layer(inputs(seed))).backward()
    assert all(torch.equal(gradient, same) for gradient, same in zip(kept, before, strict=True))


@pytest.mark.parametrize("relu", [False, True])
def test_outputs_that_are_kept_do_not_change(layer, relu):
    layer.relu = relu
    kept, graph = layer(inputs(0)).detach()[0], layer(inputs(1)).sum()
    before = kept.clone()
    loss_of(layer(inputs(2))).backward()
    graph.backward()
    layer(inputs(3))
    assert torch.equal(kept, before)


@pytest.mark.parametrize("relu", [False, True])
def test_graphs_that_live_at_the_same_time_keep_apart(layer, relu):
    heads = one_by_one(layer)
    heads = [nn.Sequential(head, nn.ReLU()) for head in heads] if relu else heads
    layer.relu = relu
    x, again = [inputs(0), inputs(1)], [inputs(0), inputs(1)]
    losses = [loss_of(layer(each)) for each in x]
    for number in (1, 0, 1):  # the second graph is used twice
        losses[number].backward(retain_graph=True)
        backward_one_by_one(heads, again[number])
    assert_gradients_match(layer, [head[0] for head in heads] if relu else heads)
    for ours, theirs in zip(x, again, strict=True):
        assert torch.allclose(ours.grad, theirs.grad)


def test_batches_of_different_sizes(layer):
    heads = one_by_one(layer)
    for images in (7, 3, 0, 5):
        x, again = inputs()[:, :images].detach().requires_grad_(), inputs()[:, :images].detach().requires_grad_()
        loss_of(layer(x)).backward()
        backward_one_by_one(heads, again)
        assert torch.allclose(x.grad, again.grad)
    assert_gradients_match(layer, heads)


def test_the_precision_may_change(layer):
    loss_of(layer(inputs())).backward()
    layer.zero_grad()
    layer.float()
    loss_of(layer(inputs().float())).backward()
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


# --- the weights


def test_weights_start_as_torchs_do():
    layer = BatchedLinear(2, 16, 400, np.random.default_rng(0))
    assert layer.weight.dtype == layer.bias.dtype == torch.float32
    assert layer.weight.shape == (2, 16, 400)
    assert layer.bias.shape == (2, 1, 400)
    for values in (*layer.weight.detach(), *layer.bias.detach()):  # of each head: uniform up to 1 / sqrt(fan_in)
        assert 0.24 < values.max() <= 0.25
        assert -0.24 > values.min() >= -0.25
        assert values.std().item() == pytest.approx(0.25 / 3**0.5, rel=0.1)


def test_weights_come_from_the_generator_alone():
    torch.manual_seed(0)
    first = BatchedLinear(K, FAN_IN, FAN_OUT, np.random.default_rng(0))
    torch.manual_seed(1)
    state = torch.get_rng_state()
    again = BatchedLinear(K, FAN_IN, FAN_OUT, np.random.default_rng(0))
    other = BatchedLinear(K, FAN_IN, FAN_OUT, np.random.default_rng(1))
    assert torch.equal(torch.get_rng_state(), state)
    for ours, same, different in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, same)
        assert not torch.isclose(ours, different).any()
    assert not torch.isclose(first.weight[0], first.weight[1]).any()  # the heads differ too
