"""A fitted method as one torch module: `Method.scores` runs it, an export writes it to a file."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pren.methods.formulas import Matrix, fixed


class ScoringModule(nn.Module):
    """Features, scores, refinement, γ.

    Args:
        features: (N, *sample_shape) -> (N, d).
        scorer: (N, d) -> (N, L), classes in the order of the class table.
        refinement: Scores (N, L) and features (N, d) -> (N, L); None for none.
        gamma: (L,) is subtracted from each class.
    """

    gamma: Tensor

    def __init__(self, features: nn.Module, scorer: nn.Module, refinement: nn.Module | None, gamma: Matrix) -> None:
        super().__init__()
        self.features = features
        self.scorer = scorer
        self.refinement = refinement
        self.register_buffer("gamma", fixed(gamma))

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, *sample_shape) -> (N, L) float64."""
        features = self.features(inputs)
        scores = self.scorer(features).double()
        if self.refinement is not None:
            scores = self.refinement(scores, features.double())
        shifted: Tensor = scores - self.gamma
        return shifted


class Computed(nn.Module):
    """A scorer in NumPy, which cannot be exported.

    Args:
        function: (n, d) -> (n, L), both in double precision.
        why: Why torch cannot compute it, for the message.
    """

    def __init__(self, function: Callable[[Matrix], Matrix], why: str) -> None:
        super().__init__()
        self.function = function
        self.why = why

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L)."""
        return torch.from_numpy(self.function(x.numpy()))
