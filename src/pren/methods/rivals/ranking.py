"""The common part of DeViSE, ALE, SJE and LatEm: a compatibility F(x, c) = max over k of xᵀ W_k a_c, and its training.

Only LatEm has several W_k. The four differ in their loss. It is exact: for some hundred classes it is cheap to score
all of them, where the papers draw wrong classes until one violates the margin.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pren.foundation.seeds import stream
from pren.methods.base import SCALINGS
from pren.methods.formulas import fixed
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.rivals.linear import LinearMethod
from pren.methods.space import Real, Whole
from pren.problem import Problem

MOMENTUM = 0.9


class RankingMethod(LinearMethod):
    """Stochastic gradient descent with momentum on a ranking loss; a method writes `_loss`.

    Early stopping is the papers' only regulariser, so `epochs` is worth tuning.

    Attributes:
        weights_: W, (K, d, m).
    """

    maps: int = 1  # K

    margin: float = param(1.0, "Δ, by how much the right class should lead.", gt=0, search=Real(0.1, 10.0, log=True))
    lr: float = param(1.0, "Learning rate; the momentum is 0.9.", gt=0, search=Real(1e-3, 10.0, log=True))
    epochs: int = param(10, "Passes over the labelled inputs.", ge=0, le=10**6, search=Whole(3, 50, log=True))
    batch_size: int = param(64, "Inputs in a batch, whose losses are averaged.", ge=1, le=10**5)
    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)
    seed: int = param(0, "For initial weights and batches.", ge=0, le=2**63 - 1)

    weights_: Matrix = learned("maps", "d", "m")

    @abstractmethod
    def _loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """(n,) the loss of each input, from its scores (n, |S|) and the column of its class (n,)."""

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        X = torch.from_numpy(self._features(problem.train)).float()
        labels = torch.from_numpy(self._places(problem))
        weights = initial_weights((self.maps, X.shape[1], A.shape[1]), stream(self.seed, "weights"))
        signatures = torch.from_numpy(A).float()
        descent = torch.optim.SGD([weights.requires_grad_()], lr=self.lr, momentum=MOMENTUM)
        for epoch in range(self.epochs):
            shuffled = torch.from_numpy(stream(self.seed, "batches", epoch).permutation(len(X)))
            for batch in torch.split(shuffled, self.batch_size):
                loss = self._loss(bilinear(X[batch], weights, signatures), labels[batch]).mean()
                descent.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # torch's own is not typed
                descent.step()
        return weights.detach().double().numpy()

    def _attribute_map(self) -> Matrix | None:
        return self.weights_[0] if self.maps == 1 else None

    def _scorer_of(self, signatures: Matrix) -> nn.Module:
        return Compatibility(self.weights_, signatures)


class Compatibility(nn.Module):
    """F with weights (K, d, m) and signatures (L, m)."""

    weights: Tensor
    signatures: Tensor

    def __init__(self, weights: Matrix, signatures: Matrix) -> None:
        super().__init__()
        self.register_buffer("weights", fixed(weights))
        self.register_buffer("signatures", fixed(signatures))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        return bilinear(x, self.weights, self.signatures)


def bilinear(x: Tensor, weights: Tensor, signatures: Tensor) -> Tensor:
    """F, (n, L), from features (n, d), weights (K, d, m) and signatures (L, m)."""
    return (x @ weights @ signatures.T).amax(dim=0)


def initial_weights(shape: tuple[int, int, int], generator: np.random.Generator) -> Tensor:
    """(K, d, m) normal numbers, every column of a map of unit length."""
    weights: NDArray[np.float64] = generator.normal(size=shape)
    return torch.from_numpy(weights / np.linalg.norm(weights, axis=1, keepdims=True)).float()


def violations(scores: Tensor, labels: Tensor, margin: float) -> Tensor:
    """By how much every wrong class comes within the margin of the right one: max(0, Δ + F(x, c) - F(x, y)).

    Args:
        scores: (n, L) F.
        labels: (n,) y.
        margin: Δ.

    Returns:
        (n, L), 0 for the right class.
    """
    right = scores.gather(1, labels[:, None])
    return (scores - right + margin).clamp(min=0).scatter(1, labels[:, None], 0.0)
