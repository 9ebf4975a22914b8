"""Ridge s→v: from signatures to the class means of features, and to the nearest one. The simplest rival of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

from scipy.spatial.distance import cdist

from pren.methods.features import Matrix, Scaling, unit
from pren.methods.linear import LinearMethod, Ridge, solve_ridge
from pren.methods.space import Choice, Real, Space
from pren.problem import Problem


class RidgeS2V(LinearMethod):
    """min_W ‖A W - M‖² + l ‖W‖², A (|S|, m) signatures, M (|S|, d) the mean features of the classes.

    Inductive. Every class counts the same, whatever its number of images. In GZSL seen classes stand where W puts
    them too, not at their own means. That it is the features which are predicted, and not the signatures, keeps a few
    classes from being the nearest ones of everything ("Ridge regression, hubness, and zero-shot learning", ECML 2015,
    which regresses single images).

    Args:
        reg: l.
        distance: "cosine" or "euclid", what the nearest class mean is nearest by.
        features: How features are scaled; see `pren.methods.features.Scaler`.
        gamma: GZSL: taken off the scores of seen classes.

    Attributes:
        weights_: W, (m, d).
    """

    name: ClassVar[str] = "ridge-s2v"
    space: ClassVar[Space] = {
        "reg": Real(1e-3, 1e1, log=True),
        "distance": Choice(("cosine", "euclid")),
        "features": Choice(("raw", "l2", "standard", "minmax")),
    }

    def __init__(
        self,
        reg: Ridge = 0.1,
        distance: Literal["cosine", "euclid"] = "cosine",
        features: Scaling = "l2",
        gamma: float = 0.0,
    ) -> None:
        self.reg = reg
        self.distance = distance
        self.features = features
        self.gamma = gamma

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        _, sums, counts = self._class_sums(problem)
        return solve_ridge(A.T @ A, self.reg, A.T @ (sums / counts[:, None]), hint="reg")

    def _scorer(self, signatures: Matrix) -> Callable[[Matrix], Matrix]:
        means = signatures @ self.weights_
        if self.distance == "euclid":
            return lambda x: -cdist(x, means)
        directions = unit(means)
        return lambda x: unit(x) @ directions.T

    def _shape(self, d: int, seen: int, m: int) -> tuple[int, ...]:
        return m, d
