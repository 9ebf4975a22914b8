"""SJE (Akata et al. 2015): a structured SVM, in which only the worst violation counts."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from pren.methods.rivals.ranking import RankingMethod, violations


class SJE(RankingMethod):
    """min_W Σ_i max(0, max_{c≠y} (Δ + F(x, c)) - F(x, y)), F(x, c) = xᵀ W a_c, over the seen classes.

    Inductive. The paper takes steps on single inputs and joins several kinds of signatures; here there is one kind.
    Parameters and attributes are those of `RankingMethod`.

    Reference: "Evaluation of output embeddings for fine-grained image classification", CVPR 2015.
    """

    name: ClassVar[str] = "sje"

    def _loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        return violations(scores, labels, self.margin).amax(dim=1)
