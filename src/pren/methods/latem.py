"""LatEm (Xian et al. 2016): several bilinear maps, of which an image and a class take the one that suits them."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from pren.methods.features import Scaling
from pren.methods.linear import Count
from pren.methods.ranking import Epochs, Margin, RankingMethod, Rate, Seed, violations
from pren.methods.space import Choice, Space


class LatEm(RankingMethod):
    """min_W Σ_i Σ_{c≠y} max(0, Δ + F(x, c) - F(x, y)), F(x, c) = max_k xᵀ W_k a_c, over the seen classes.

    Inductive. Reference: "Latent embeddings for zero-shot classification", CVPR 2016.

    † Re-implemented from an abstract and a summary. The paper draws one wrong class per step, and chooses the number of
    maps by validation or by pruning those that few images take. Here all violating classes count and nothing is pruned.

    Args:
        maps: K.
        margin: As for `RankingMethod`, and so are the others.
        lr: As there.
        epochs: As there.
        batch_size: As there.
        features: As there.
        gamma: As there.
        seed: As there.
    """

    name: ClassVar[str] = "latem"
    space: ClassVar[Space] = {
        **RankingMethod.space,
        "maps": Choice((2, 4, 6, 8, 10)),
    }

    def __init__(
        self,
        maps: Count = 4,
        margin: Margin = 1.0,
        lr: Rate = 1.0,
        epochs: Epochs = 10,
        batch_size: Count = 64,
        features: Scaling = "l2",
        gamma: float = 0.0,
        seed: Seed = 0,
    ) -> None:
        super().__init__(margin, lr, epochs, batch_size, features, gamma, seed)
        self.maps = maps

    def _loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        return violations(scores, labels, self.margin).sum(dim=1)
