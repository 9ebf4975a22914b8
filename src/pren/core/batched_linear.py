"""K linear layers as one: the work horse of the ensemble."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class BatchedLinear(nn.Module):
    """y_k = x_k W_k + b_k for K heads at once, initialised as torch's `nn.Linear` is.

    Attributes:
        weight: (K, fan_in, fan_out).
        bias: (K, 1, fan_out).
    """

    def __init__(self, heads: int, fan_in: int, fan_out: int, rng: np.random.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(fan_in)

        def draw(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.from_numpy(rng.random(shape, dtype=np.float32)).mul_(2 * bound).sub_(bound))

        self.weight = draw(heads, fan_in, fan_out)
        self.bias = draw(heads, 1, fan_out)
        self.gradient: Tensor | None = None  # the memory that the gradient of the weight is written to

    def forward(self, x: Tensor) -> Tensor:
        """(K, N, fan_in) -> (K, N, fan_out)."""
        if torch.is_grad_enabled() and x.device.type == "cpu":
            result: Tensor = _KeepGradientMemory.apply(x, self.weight, self.bias, self)
            return result
        return torch.baddbmm(self.bias, x, self.weight)


class _KeepGradientMemory(torch.autograd.Function):
    """`baddbmm` that writes the weight's gradient to the same memory in every step.

    With K=50 the gradients weigh 80 to 200 MB. On a CPU, allocating them anew in every step costs more than computing
    them, because the system zeroes each page first. Gradients still add up over several backward passes; but a
    reference to `weight.grad` kept across `zero_grad` sees the next step's values.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, layer: BatchedLinear) -> Tensor:
        ctx.save_for_backward(x)
        ctx.layer = layer
        return torch.baddbmm(bias, x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, Tensor, None]:
        (x,) = ctx.saved_tensors
        layer: BatchedLinear = ctx.layer
        weight = layer.weight
        if weight.grad is not None:
            weight.grad.baddbmm_(x.transpose(1, 2), grad)
        elif weight.requires_grad:
            if layer.gradient is None:
                layer.gradient = torch.empty_like(weight)
            weight.grad = torch.bmm(x.transpose(1, 2), grad, out=layer.gradient)
        grad_x = torch.bmm(grad, weight.detach().transpose(1, 2)) if ctx.needs_input_grad[0] else None
        return grad_x, None, grad.sum(dim=1, keepdim=True), None
