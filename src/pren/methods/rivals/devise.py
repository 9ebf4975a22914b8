"""DeViSE (Frome et al. 2013): every wrong class must stay a margin below the right one."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from pren.methods.rivals.ranking import RankingMethod, violations


class DeViSE(RankingMethod):
    """min_W Σ_i Σ_{c≠y} max(0, Δ + F(x, c) - F(x, y)), F(x, c) = xᵀ W a_c, over the seen classes.

    Inductive. The paper trains the image network too, takes word vectors for signatures, and steps on the first
    violating class of a random order. Here the features are fixed and all violating classes count. Parameters and
    attributes are those of `RankingMethod`. Reference: "DeViSE: a deep visual-semantic embedding model", NIPS 2013.
    """

    name: ClassVar[str] = "devise"

    def _loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        return violations(scores, labels, self.margin).sum(dim=1)
