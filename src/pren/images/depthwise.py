"""Gradients of depthwise convolutions in bfloat16, which torch computes slowly on CPUs.

There, the gradient of the input takes ten to eighty times as long as in float32 if the convolution skips places
(stride 2), and that of weights three to five times as long if the kernel is larger than 3 x 3. Both make training in
bfloat16 slower than in float32 (`python -m benchmarks backbone_step`). So the first is computed in float32, and the
second from pieces of 3 x 3, which are fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

PIECE = 3  # the side of a kernel whose gradient is fast
Pair = tuple[int, int]


class OwnGradients(TorchFunctionMode):
    """Within this context, depthwise convolutions of a CPU have the gradients of this file; their output is torch's."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Replace `conv2d` where it is depthwise, as `nn.Conv2d` and timm's layers call it."""
        if func is functional.conv2d and not kwargs and len(args) == 7 and _is_depthwise(*args):
            x, weight, bias, stride, padding, _, _ = args
            given = [None if value is None else value.to(torch.bfloat16) for value in (x, weight, bias)]
            return _Depthwise.apply(*given, stride, padding)  # type: ignore[no-untyped-call]
        return func(*args, **(kwargs or {}))


def _is_depthwise(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> bool:
    pairs = all(isinstance(pair, tuple) and len(pair) == 2 for pair in (stride, padding))
    return pairs and x.ndim == 4 and tuple(dilation) == (1, 1) and x.shape[1] == weight.shape[0] == groups > 1


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return functional.conv2d(x, weight, bias, stride, padding, (1, 1), len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = gradient_of_input(grad, x, weight, ctx.stride, ctx.padding)
        if ctx.needs_input_grad[1]:
            grad_weight = gradient_of_weight(grad, x, weight, ctx.stride, ctx.padding)
        if ctx.needs_input_grad[2]:
            grad_bias = grad.sum((0, 2, 3))
        return grad_x, grad_weight, grad_bias, None, None


def gradient_of_input(grad: Tensor, x: Tensor, weight: Tensor, stride: Pair, padding: Pair) -> Tensor:
    """(N, C, H, W), where `grad` is (N, C, h, w) and `weight` is (C, 1, k, l)."""
    if max(stride) == 1:
        return _gradients(grad, x, weight, stride, padding, True)
    return _gradients(grad.float(), x.float(), weight.float(), stride, padding, True).to(x.dtype)


def gradient_of_weight(grad: Tensor, x: Tensor, weight: Tensor, stride: Pair, padding: Pair) -> Tensor:
    """(C, 1, k, l): of a larger kernel in pieces of 3 x 3, each from the part of the input that it sees."""
    if min(weight.shape[2:]) <= PIECE:
        return _gradients(grad, x, weight, stride, padding, False)
    whole = torch.empty_like(weight)
    wide = functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    # How far a piece reaches: to the last place that the convolution visits.
    height, width = ((count - 1) * step + PIECE for count, step in zip(grad.shape[2:], stride, strict=True))
    for top in _starts(weight.shape[2]):
        for left in _starts(weight.shape[3]):
            seen = wide[:, :, top : top + height, left : left + width].contiguous(memory_format=torch.channels_last)
            place = (..., slice(top, top + PIECE), slice(left, left + PIECE))
            whole[place] = _gradients(grad, seen, weight[place].contiguous(), stride, (0, 0), False)
    return whole


def _starts(side: int) -> list[int]:
    """Where pieces that cover a side begin; the last one may overlap."""
    return [*range(0, side - PIECE, PIECE), side - PIECE]


def _gradients(grad: Tensor, x: Tensor, weight: Tensor, stride: Pair, padding: Pair, of_input: bool) -> Tensor:
    mask = [of_input, not of_input, False]
    found = torch.ops.aten.convolution_backward(
        grad, x, weight, None, stride, padding, (1, 1), False, (0, 0), len(weight), mask
    )
    return found[0] if of_input else found[1]
