"""Eq. 3 and 4: K embedding heads as one module, and their loss.

Head k is an MLP f_k that maps an image feature (d,) to a vector v (h,) in the space of its label embeddings E_k (h, L);
p_k(c|x) = softmax_c(v · E_k[:, c]) over *all* classes, seen and unseen. The heads differ in weights and embeddings
only, so every layer is one batched product over the K heads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from pren.core.projection import LabelEmbeddings


class BatchedLinear(nn.Module):
    """y_k = x_k W_k + b_k for K heads at once, initialised like `nn.Linear`.

    Args:
        heads: K.
        fan_in: Inputs of each head.
        fan_out: Outputs of each head.
        rng: Draws the initial weights; None leaves them empty, for weights that are read from a file.
        relu: Whether a ReLU follows.

    Attributes:
        weight: (K, fan_in, fan_out).
        bias: (K, 1, fan_out).
    """

    def __init__(
        self, heads: int, fan_in: int, fan_out: int, rng: np.random.Generator | None, relu: bool = False
    ) -> None:
        super().__init__()
        bound = 1 / math.sqrt(fan_in)

        def draw(*shape: int) -> nn.Parameter:
            if rng is None:
                return nn.Parameter(torch.empty(shape))
            return nn.Parameter(torch.from_numpy(rng.random(shape, dtype=np.float32)).mul_(2 * bound).sub_(bound))

        self.weight = draw(heads, fan_in, fan_out)
        self.bias = draw(heads, 1, fan_out)
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        """(K, N, fan_in) -> (K, N, fan_out)."""
        y = torch.baddbmm(self.bias, x, self.weight)
        return y.relu_() if self.relu else y


class Ensemble(nn.Module):
    """K heads with their label embeddings.

    Args:
        in_features: d, the length of an image feature.
        hidden: Widths of the hidden layers; the paper has (512, 512).
        labels: Label embeddings and voting subsets, classes in the order of their names.
        output_relu: Whether the last layer has a ReLU too, as in the paper.
        rng: See `BatchedLinear`.
        linear: The type of the layers; `pren.training` has one that computes the same and reuses its memory.
    """

    embeddings: Tensor
    subsets: Tensor

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        labels: LabelEmbeddings,
        output_relu: bool,
        rng: np.random.Generator | None,
        linear: type[BatchedLinear] = BatchedLinear,
    ) -> None:
        super().__init__()
        heads, h, _ = labels.vectors.shape
        widths = [in_features, *hidden]
        self.layers = nn.ModuleList(
            linear(heads, fan_in, fan_out, rng, relu=True) for fan_in, fan_out in pairwise(widths)
        )
        self.layers.append(linear(heads, widths[-1], h, rng))
        self.output_relu = output_relu
        self.register_buffer("embeddings", torch.from_numpy(labels.vectors).float())  # (K, h, L)
        self.register_buffer("subsets", torch.from_numpy(labels.subsets))  # (K, L)

    def forward(self, features: Tensor) -> Tensor:
        """Embed images in the space of every head, before the output ReLU: (N, d) -> (K, N, h)."""
        x = features.expand(len(self.embeddings), *features.shape)
        for layer in self.layers:
            x = layer(x)
        return x

    def activate(self, raw: Tensor) -> Tensor:
        """v = f_k(f_v(x)) from the output of `forward`."""
        return raw.relu() if self.output_relu else raw

    def similarities(self, v: Tensor) -> Tensor:
        """v · E_k[:, c] for every head, image and class: (K, N, h) -> (K, N, L)."""
        return torch.bmm(v, self.embeddings)

    def loss(self, features: Tensor, targets: Tensor) -> Tensor:
        """Eq. 3: the mean over images of the sum over heads of -log p_k(y|x) (Eq. 4).

        Args:
            features: (N, d).
            targets: (N,) class indices.
        """
        logits = self.similarities(self.activate(self(features)))
        heads, images, classes = logits.shape
        repeated = targets.expand(heads, images).reshape(-1)
        return functional.cross_entropy(logits.reshape(-1, classes), repeated, reduction="sum") / images
