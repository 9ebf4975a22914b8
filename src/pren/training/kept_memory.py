"""Layers of the ensemble that reuse their memory in every training step."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pren.core.ensemble import BatchedLinear

KEPT = (torch.float32, torch.float64)  # the types that kept memory can hold


class KeptLinear(BatchedLinear):
    """`BatchedLinear` in kept memory while it is trained on a CPU."""

    def __init__(
        self, heads: int, fan_in: int, fan_out: int, rng: np.random.Generator | None, relu: bool = False
    ) -> None:
        super().__init__(heads, fan_in, fan_out, rng, relu)
        self.memory = KeptMemory()

    def forward(self, x: Tensor) -> Tensor:
        """(K, N, fan_in) -> (K, N, fan_out)."""
        if torch.is_grad_enabled() and x.device.type == "cpu" and x.dtype == self.weight.dtype and x.dtype in KEPT:
            result: Tensor = _InKeptMemory.apply(  # type: ignore[no-untyped-call]
                x, self.weight, self.bias, self.relu, self.memory
            )
            return result
        return super().forward(x)


class KeptMemory:
    """Memory that is reused in every training step.

    The gradients of K=50 heads take 100 to 300 MB. On a CPU, allocating them in every step costs as much as computing
    them, because the system zeroes large memory page by page.

    Memory is reused only when the last tensor (or view, or graph) that uses it is gone. Until then, as in gradient
    accumulation or with two graphs alive, new memory is allocated.
    """

    def __init__(self) -> None:
        self._free: dict[str, Tensor] = {}

    def __reduce__(self) -> tuple[type[KeptMemory], tuple[()]]:
        return KeptMemory, ()  # a copy of a layer starts with no memory

    def empty(self, name: str, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        """An uninitialised tensor, in the memory of the last one of that name if it is free."""
        block = self._free.pop(name, None)
        if block is None or block.shape != shape or block.dtype != dtype:
            block = torch.empty(shape, dtype=dtype)
        borrowed = block.numpy()  # lives exactly as long as the storage of the tensor made from it
        weakref.finalize(borrowed, self._free.__setitem__, name, block)
        return torch.from_numpy(borrowed)


class _InKeptMemory(torch.autograd.Function):
    """`BatchedLinear.forward` with output and gradients in kept memory."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, relu: bool, memory: KeptMemory) -> Tensor:
        shape = torch.Size((*x.shape[:2], weight.shape[2]))
        y = torch.baddbmm(bias, x, weight, out=memory.empty("y", shape, x.dtype))
        if relu:
            y.relu_()
        ctx.save_for_backward(x, weight, y if relu else None)
        ctx.memory = memory
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:
        x, weight, y = ctx.saved_tensors
        memory: KeptMemory = ctx.memory
        if y is not None:
            before_relu = memory.empty("before_relu", grad.shape, grad.dtype)
            grad = torch.ops.aten.threshold_backward(grad, y, 0, grad_input=before_relu)
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.bmm(grad, weight.transpose(1, 2), out=memory.empty("grad_x", x.shape, x.dtype))
        if ctx.needs_input_grad[1]:
            grad_weight = memory.empty("grad_weight", weight.shape, weight.dtype)
            torch.bmm(x.transpose(1, 2), grad, out=grad_weight)
        if ctx.needs_input_grad[2]:
            grad_bias = grad.sum(dim=1, keepdim=True)
        return grad_x, grad_weight, grad_bias, None, None
