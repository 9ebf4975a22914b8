"""Gradients of depthwise convolutions in bfloat16."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from pren.images.depthwise import OwnGradients, gradient_of_input, gradient_of_weight

ROUNDING = 2.0**-7  # bfloat16 has eight digits; sums are rounded once more

pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
kernels = st.tuples(st.integers(1, 8), st.integers(1, 8))


@given(pairs, pairs, kernels, st.integers(0, 5), st.integers(1, 3), st.integers(0, 99))
def test_gradients_are_those_of_autograd(stride, padding, kernel, extra, channels, seed):
    chance = torch.Generator().manual_seed(seed)
    height, width = (side + extra for side in kernel)
    x = torch.randn(2, channels, height, width, generator=chance, dtype=torch.float64)
    x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    weight = torch.randn(channels, 1, *kernel, generator=chance, dtype=torch.float64, requires_grad=True)
    y = functional.conv2d(x, weight, None, stride, padding, 1, channels)
    grad = torch.randn(y.shape, generator=chance, dtype=torch.float64)
    of_x, of_weight = torch.autograd.grad(y, (x, weight), grad)
    x, weight = x.detach(), weight.detach()
    assert torch.allclose(gradient_of_input(grad, x, weight, stride, padding), of_x, rtol=1e-5, atol=1e-4)
    assert torch.allclose(gradient_of_weight(grad, x, weight, stride, padding), of_weight, atol=1e-9)


@pytest.mark.parametrize("kernel", [3, 5, 7])
@pytest.mark.parametrize(("stride", "bias"), [(1, True), (2, False)])
def test_a_layer_in_bfloat16_has_torchs_output_and_the_gradients_of_float32(kernel, stride, bias, bfloat16):
    torch.manual_seed(0)
    layer = nn.Conv2d(16, 16, kernel, stride, kernel // 2, groups=16, bias=bias)
    layer.weight.data = layer.weight.data.bfloat16().float()  # so that float32 starts from the same numbers
    x = torch.randn(4, 16, 14, 14).bfloat16().float().contiguous(memory_format=torch.channels_last).requires_grad_()
    weights = [x, *layer.parameters()]
    exact = layer(x)
    grad = torch.randn(exact.shape).bfloat16().float()
    wanted = torch.autograd.grad(exact, weights, grad)
    with torch.autocast("cpu", torch.bfloat16):
        plain = layer(x)
        with OwnGradients():
            own = layer(x)
    assert own.dtype == torch.bfloat16
    assert torch.equal(own, plain)
    assert type(own.grad_fn).__name__ != type(plain.grad_fn).__name__
    for found, right in zip(torch.autograd.grad(own, weights, grad.bfloat16()), wanted, strict=True):
        assert found.dtype == torch.float32
        assert (found - right).abs().max() <= ROUNDING * right.abs().max()


@pytest.mark.parametrize("groups", [1, 2])
def test_other_convolutions_are_torchs(groups, bfloat16):
    layer = nn.Conv2d(4, 4, 3, groups=groups)
    x = torch.randn(2, 4, 6, 6)
    with torch.autocast("cpu", torch.bfloat16):
        plain = layer(x)
        with OwnGradients():
            own = layer(x)
    assert torch.equal(own, plain)
    assert type(own.grad_fn) is type(plain.grad_fn)
