"""A fitted method as one torch module, so that it can leave the house."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.methods.base import Method
from pren.methods.preparation import Matrix
from pren.methods.refinement.base import RefinementModule
from pren.problem.scoring import calibrated


class ScoringModule(nn.Module):
    """Features, scores, refinement, γ.

    Args:
        features: (N, *sample_shape) -> (N, d).
        scorer: (N, d) -> (N, L), classes in the order of the class table.
        refinement: What scores go through; None for nothing.
        gamma: (L,) what is taken off each class.
    """

    gamma: Tensor

    def __init__(
        self, features: nn.Module, scorer: nn.Module, refinement: RefinementModule | None, gamma: Matrix
    ) -> None:
        super().__init__()
        self.features = features
        self.scorer = scorer
        self.refinement = refinement
        self.register_buffer("gamma", torch.from_numpy(gamma))

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, *sample_shape) -> (N, L) float64."""
        features = self.features(inputs)
        scores = self.scorer(features).double()
        if self.refinement is not None:
            scores = self.refinement(scores, features.double())
        shifted: Tensor = scores - self.gamma
        return shifted


def scoring_module(method: Method) -> ScoringModule:
    """What `method.scores` computes, as one module."""
    method._check_fitted()
    features, scorer = method._parts()
    gamma = method.gamma if method.chosen_gamma_ is None else method.chosen_gamma_
    shift = -calibrated(np.zeros((1, len(method.classes_))), method.classes_, method.setting_, gamma)[0]
    refinement = method.refinement_.module() if method.refinement_.looks else None
    return ScoringModule(features, scorer, refinement, shift).eval().requires_grad_(False)


def no_module(method: Method, why: str) -> PrenError:
    """What to raise for a method that is no fixed function of torch's."""
    return PrenError(
        "export-unsupported",
        f"{method.name} cannot be exported: {why}. Take another method, or label with 'pren predict'.",
    )
