"""ConSE (Norouzi et al. 2014): an input's signature is the mean of those of the most probable seen classes."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from pren.methods.base import SCALINGS
from pren.methods.formulas import Cosine, fixed
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.rivals.classifiers import cross_entropy, fit_classifiers
from pren.methods.rivals.linear import LinearMethod
from pren.methods.space import Real, Whole
from pren.problem import Problem


class ConSE(LinearMethod):
    """f(x) = Σ_t p_t a_t / Σ_t p_t over the T most probable seen classes; scores cos(f(x), a_c).

    p is a softmax regression on the features: min_W -mean log p(y | x) + reg / 2 ‖W‖². Inductive. In GZSL it rarely
    predicts an unseen class, because f(x) mixes signatures of seen ones. Reference: "Zero-shot learning by convex
    combination of semantic embeddings", ICLR 2014.

    † Re-implemented from a description, without the paper. The paper takes the probabilities of an image network; here
    a last layer without bias is fitted to given features.

    Attributes:
        weights_: W, (|S|, d), classes in the order of their names.
    """

    name: ClassVar[str] = "conse"

    top: int = param(10, "T, how many classes are mixed, at most all.", ge=1, search=Whole(1, 100, log=True))
    reg: float = param(1e-5, "The weight of ‖W‖² / 2.", gt=0, search=Real(1e-6, 1e-1, log=True))
    iterations: int = param(200, "The most steps of L-BFGS.", ge=1, le=10**6)
    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)

    weights_: Matrix = learned("S", "d")

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        X, labels = self._features(problem.train), self._places(problem)
        return fit_classifiers(X, labels, len(A), cross_entropy, self.reg, self.iterations)

    def _scorer_of(self, signatures: Matrix) -> nn.Module:
        return nn.Sequential(Mixture(self.weights_, self._seen(), self.top), Cosine(signatures))


def mixture(p: Tensor, signatures: Tensor, top: int) -> Tensor:
    """(n, m) the mean of the `top` most probable signatures (C, m), weighted by their probabilities p (n, C)."""
    kept, best = p.topk(min(top, len(signatures)), dim=1)
    return (kept[:, :, None] * signatures[best]).sum(dim=1) / kept.sum(dim=1, keepdim=True)


class Mixture(nn.Module):
    """f(x) from W (C, d), signatures (C, m) and T."""

    weights: Tensor
    signatures: Tensor

    def __init__(self, weights: Matrix, signatures: Matrix, top: int) -> None:
        super().__init__()
        self.register_buffer("weights", fixed(weights.T))
        self.register_buffer("signatures", fixed(signatures))
        self.top = top

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, m)."""
        return mixture((x @ self.weights).softmax(dim=1), self.signatures, self.top)
