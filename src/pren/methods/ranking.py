"""What DeViSE, ALE, SJE and LatEm share: a compatibility that ranks the right class first, and how it is trained.

F(x, c) = max over k of xᵀ W_k a_c, with a single W but for LatEm. The loss is what tells the four apart. It is exact:
with some hundred classes it costs nothing to score all of them, where the papers draw wrong classes until one violates
the margin.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from pren.methods.features import Matrix, Scaling
from pren.methods.linear import Count, LinearMethod
from pren.methods.space import Choice, Real, Space, Whole
from pren.problem import Problem
from pren.seeds import stream

MOMENTUM = 0.9
Epochs = Annotated[int, Field(ge=0, le=10**6)]
Rate = Annotated[float, Field(gt=0)]
Margin = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0)]


class RankingMethod(LinearMethod):
    """Stochastic gradient descent with momentum on a ranking loss; a method writes `_loss`.

    The papers' only regulariser is to stop in time, so `epochs` is worth tuning.

    Args:
        margin: Δ, by how much the right class should lead.
        lr: Learning rate; the momentum is 0.9.
        epochs: Passes over the labelled images.
        batch_size: Images in a batch, whose losses are averaged.
        features: How features are scaled; see `pren.methods.features.Scaler`.
        gamma: GZSL: taken off the scores of seen classes.
        seed: For initial weights and batches.

    Attributes:
        weights_: W, (K, d, m).
    """

    space: ClassVar[Space] = {
        "margin": Real(0.1, 10.0, log=True),
        "lr": Real(1e-3, 10.0, log=True),
        "epochs": Whole(3, 50, log=True),
        "features": Choice(("raw", "l2", "standard", "minmax")),
    }

    maps: int = 1  # K

    def __init__(
        self,
        margin: Margin = 1.0,
        lr: Rate = 1.0,
        epochs: Epochs = 10,
        batch_size: Count = 64,
        features: Scaling = "l2",
        gamma: float = 0.0,
        seed: Seed = 0,
    ) -> None:
        self.margin = margin
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.features = features
        self.gamma = gamma
        self.seed = seed

    @abstractmethod
    def _loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """(n,) the loss of each image, from its scores (n, |S|) and the column of its class (n,)."""

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        X = torch.from_numpy(self.scaler_(problem.train)).float()
        labels = torch.from_numpy(self._places(problem))
        weights = initial_weights((self.maps, X.shape[1], A.shape[1]), stream(self.seed, "weights"))
        signatures = torch.from_numpy(A).float()
        descent = torch.optim.SGD([weights.requires_grad_()], lr=self.lr, momentum=MOMENTUM)
        for epoch in range(self.epochs):
            shuffled = torch.from_numpy(stream(self.seed, "batches", epoch).permutation(len(X)))
            for batch in torch.split(shuffled, self.batch_size):
                loss = self._loss(compatibility(X[batch], weights, signatures), labels[batch]).mean()
                descent.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # torch's own is not typed
                descent.step()
        return weights.detach().double().numpy()

    def _scorer(self, signatures: Matrix) -> Callable[[Matrix], Matrix]:
        weights, table = torch.from_numpy(self.weights_), torch.from_numpy(signatures)
        return lambda x: compatibility(torch.from_numpy(x), weights, table).numpy()

    def _shape(self, d: int, seen: int, m: int) -> tuple[int, ...]:
        return self.maps, d, m


def compatibility(x: Tensor, weights: Tensor, signatures: Tensor) -> Tensor:
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
