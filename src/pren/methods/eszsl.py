"""ESZSL (Romera-Paredes & Torr 2015): a bilinear compatibility in closed form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pren.methods.features import Matrix, Scaling
from pren.methods.linear import LinearMethod, Ridge, solve_ridge
from pren.methods.space import Choice, Real, Space
from pren.problem import Problem


class ESZSL(LinearMethod):
    """min_V ‖X V Aᵀ - Y‖² + g ‖V Aᵀ‖² + l ‖X V‖² + g l ‖V‖², X (n, d) features, A (|S|, m) signatures, Y in {-1, 1}.

    Inductive: the pool is not looked at. Images are taken as flat pixels. Reference: "An embarrassingly simple approach
    to zero-shot learning", ICML 2015.

    Args:
        feature_reg: g.
        signature_reg: l.
        features: How features are scaled; see `pren.methods.features.Scaler`.
        gamma: GZSL: taken off the scores of seen classes.

    Attributes:
        weights_: V, (d, m).
    """

    name: ClassVar[str] = "eszsl"
    added: ClassVar[Mapping[str, Any]] = {"features": "raw"}
    space: ClassVar[Space] = {
        "feature_reg": Real(1e-3, 1e5, log=True),
        "signature_reg": Real(1e-4, 1e2, log=True),
        "features": Choice(("raw", "l2", "standard", "minmax")),
    }

    def __init__(
        self,
        feature_reg: Ridge = 1.0,
        signature_reg: Ridge = 1.0,
        features: Scaling = "raw",
        gamma: float = 0.0,
    ) -> None:
        self.feature_reg = feature_reg
        self.signature_reg = signature_reg
        self.features = features
        self.gamma = gamma

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        gram, sums, _ = self._class_sums(problem, gram=True)
        cross = (2 * sums - sums.sum(axis=0)).T  # XᵀY: +1 for the images of the class, -1 for all others
        hint = "feature_reg and signature_reg"
        left = solve_ridge(gram, self.feature_reg, cross @ A, hint=hint)  # (d, m)
        return solve_ridge(A.T @ A, self.signature_reg, left.T, hint=hint).T

    def _scorer(self, signatures: Matrix) -> Callable[[Matrix], Matrix]:
        compatibility = self.weights_ @ signatures.T
        return lambda x: x @ compatibility

    def _shape(self, d: int, seen: int, m: int) -> tuple[int, ...]:
        return d, m
