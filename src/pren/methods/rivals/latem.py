"""LatEm (Xian et al. 2016): several bilinear maps, of which the best counts for each input and class."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from pren.methods.params import param
from pren.methods.rivals.ranking import RankingMethod, violations
from pren.methods.space import Choice


class LatEm(RankingMethod):
    """min_W Σ_i Σ_{c≠y} max(0, Δ + F(x, c) - F(x, y)), F(x, c) = max_k xᵀ W_k a_c, over the seen classes.

    Inductive. Reference: "Latent embeddings for zero-shot classification", CVPR 2016.

    † Re-implemented from an abstract and a summary. The paper draws one wrong class per step, and chooses the number of
    maps by validation or by pruning those that few inputs use. Here all violating classes count and nothing is pruned.

    Other parameters and attributes are those of `RankingMethod`.
    """

    name: ClassVar[str] = "latem"
    maps: int = param(2, "K.", ge=1, le=10**6, search=Choice((2, 4, 6, 8, 10)))

    def _loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        return violations(scores, labels, self.margin).sum(dim=1)
