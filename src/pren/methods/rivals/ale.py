"""ALE (Akata et al. 2013, 2016): violations weighted by the rank of the right class."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from pren.methods.rivals.ranking import RankingMethod, violations


class ALE(RankingMethod):
    """min_W Σ_i β_r / r Σ_{c≠y} max(0, Δ + F(x, c) - F(x, y)), r the number of violating classes, β_r = Σ_{j≤r} 1/j.

    F(x, c) = xᵀ W a_c, over the seen classes. Inductive. The paper estimates the rank from the number of draws until a
    class violates; here it is counted. Its margin is 1. Parameters and attributes are those of `RankingMethod`.

    Reference: "Label-embedding for image classification", TPAMI 2016.
    """

    name: ClassVar[str] = "ale"

    def _loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        return weighted_ranking(scores, labels, self.margin)


def weighted_ranking(scores: Tensor, labels: Tensor, margin: float) -> Tensor:
    """(n,) the loss of each input from scores (n, L) and labels (n,); the weight of its rank has no gradient."""
    amounts = violations(scores, labels, margin)
    rank = (amounts > 0).sum(dim=1)
    places = torch.arange(1, scores.shape[1] + 1, dtype=scores.dtype)
    beta = torch.cat([places.new_zeros(1), places.reciprocal().cumsum(0)])
    return beta[rank] / rank.clamp(min=1) * amounts.sum(dim=1)
