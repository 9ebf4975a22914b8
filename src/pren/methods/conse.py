"""ConSE (Norouzi et al. 2014): an image's signature is the mean of those of the seen classes it looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from scipy.special import softmax as probabilities

from pren.methods.classifiers import fit_classifiers, softmax
from pren.methods.features import Matrix, Scaling, unit
from pren.methods.linear import Count, LinearMethod, Ridge
from pren.methods.space import Choice, Real, Space, Whole
from pren.problem import Problem


class ConSE(LinearMethod):
    """f(x) = Σ_t p_t a_t / Σ_t p_t over the T most probable seen classes; scores cos(f(x), a_c).

    p is a softmax regression on the features: min_W -mean log p(y | x) + reg / 2 ‖W‖². Inductive. In GZSL an unseen
    class has hardly a chance, as f(x) is made of seen ones. Reference: "Zero-shot learning by convex combination of
    semantic embeddings", ICLR 2014.

    † Re-implemented from a description without the paper's text at hand. The paper takes the probabilities of an image
    network; here features are given, and the last layer is fitted to them, without a bias.

    Args:
        top: T, how many classes are mixed; if there are fewer, all of them.
        reg: The weight of ‖W‖² / 2.
        iterations: At most so many steps of L-BFGS.
        features: How features are scaled; see `pren.methods.features.Scaler`.
        gamma: GZSL: taken off the scores of seen classes.

    Attributes:
        weights_: W, (|S|, d), classes in the order of their names.
    """

    name: ClassVar[str] = "conse"
    space: ClassVar[Space] = {
        "top": Whole(1, 100, log=True),
        "reg": Real(1e-6, 1e-1, log=True),
        "features": Choice(("raw", "l2", "standard", "minmax")),
    }

    def __init__(
        self,
        top: Count = 10,
        reg: Ridge = 1e-2,
        iterations: Count = 200,
        features: Scaling = "standard",
        gamma: float = 0.0,
    ) -> None:
        self.top = top
        self.reg = reg
        self.iterations = iterations
        self.features = features
        self.gamma = gamma

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        X, labels = self.scaler_(problem.train), self._places(problem)
        return fit_classifiers(X, labels, len(A), softmax, self.reg, self.iterations)

    def _scorer(self, signatures: Matrix) -> Callable[[Matrix], Matrix]:
        A = self._seen()
        table = unit(signatures)
        return lambda x: unit(mixture(probabilities(x @ self.weights_.T, axis=1), A, self.top)) @ table.T

    def _shape(self, d: int, seen: int, m: int) -> tuple[int, ...]:
        return seen, d


def mixture(p: Matrix, signatures: Matrix, top: int) -> Matrix:
    """(n, m) the mean of the `top` most probable signatures (C, m), weighted by their probabilities p (n, C)."""
    best = np.argsort(-p, axis=1, kind="stable")[:, :top]
    kept = np.zeros_like(p)
    np.put_along_axis(kept, best, np.take_along_axis(p, best, axis=1), axis=1)
    mixed: Matrix = kept @ signatures / kept.sum(axis=1, keepdims=True)
    return mixed
