"""ESZSL (Romera-Paredes & Torr 2015): a bilinear compatibility in closed form."""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from pren.methods.base import SCALINGS
from pren.methods.formulas import Affine
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.rivals.linear import LinearMethod, solve_ridge
from pren.methods.space import Real
from pren.problem import Problem


class ESZSL(LinearMethod):
    """min_V ‖X V Aᵀ - Y‖² + g ‖V Aᵀ‖² + l ‖X V‖² + g l ‖V‖², X (n, d) features, A (|S|, m) signatures, Y in {0, 1}.

    Inductive: the pool is not used. Image arrays become flat pixels. Reference: "An embarrassingly simple approach to
    zero-shot learning", ICML 2015.

    The paper has Y in {-1, 1}; this has {0, 1}, like the code that others compare with (Xian et al.'s evaluation and
    its ports to Python). V has no offset, so with {-1, 1} and features whose mean is not 0, most of V explains the many
    -1. Where the mean is 0 (`features="standard"`), scores with {-1, 1} are twice those with {0, 1}.

    The paper chooses g and l on validation classes. The defaults here were chosen on those of CUB and `numbers`.

    Attributes:
        weights_: V, (d, m).
    """

    name: ClassVar[str] = "eszsl"

    feature_reg: float = param(1.0, "g.", gt=0, search=Real(1e-3, 1e5, log=True))
    signature_reg: float = param(0.3, "l.", gt=0, search=Real(1e-4, 1e2, log=True))
    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)

    weights_: Matrix = learned("d", "m")

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        gram, sums, _ = self._class_sums(problem, gram=True)
        hint = "feature_reg and signature_reg"
        left = solve_ridge(gram, self.feature_reg, sums.T @ A, hint=hint)  # (d, m); with Y in {0, 1}, XᵀY are the sums
        return solve_ridge(A.T @ A, self.signature_reg, left.T, hint=hint).T

    def _attribute_map(self) -> Matrix:
        return self.weights_

    def _scorer_of(self, signatures: Matrix) -> nn.Module:
        return Affine(self.weights_ @ signatures.T)
