"""SAE (Kodirov et al. 2017): a linear autoencoder whose code is the signature."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import eigh
from torch import nn

from pren.methods.base import SCALINGS
from pren.methods.formulas import Affine, Cosine
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.rivals.linear import LinearMethod
from pren.methods.space import Real
from pren.problem import Problem

Direction = Literal["s2f", "f2s"]


class SAE(LinearMethod):
    """min_W ‖X - S W‖² + l ‖X Wᵀ - S‖², X (n, d) features, S (n, m) the signature of every input's class.

    The solution is that of SᵀS W + W l XᵀX = (1 + l) SᵀX. Inductive. Reference: "Semantic autoencoder for zero-shot
    learning", CVPR 2017.

    The paper predicts in both directions and does not say which to prefer; later publications agree that from
    signatures to features is much better.

    Attributes:
        weights_: W, (m, d).
    """

    name: ClassVar[str] = "sae"

    code_weight: float = param(
        0.2, "l, how much the encoder counts against the decoder.", gt=0, search=Real(1e-6, 1e3, log=True)
    )
    direction: Direction = param(
        "s2f", "'s2f' compares features with decoded signatures, cos(x, Wᵀa_c); 'f2s' encoded features, cos(W x, a_c)."
    )
    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)

    weights_: Matrix = learned("m", "d")

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        gram, sums, counts = self._class_sums(problem, gram=True)
        signature_gram = (A.T * counts) @ A  # SᵀS
        return solve_sylvester(signature_gram, self.code_weight * gram, (1 + self.code_weight) * A.T @ sums)

    def _scorer_of(self, signatures: Matrix) -> nn.Module:
        if self.direction == "f2s":
            return nn.Sequential(Affine(self.weights_.T), Cosine(signatures))
        return Cosine(signatures @ self.weights_)


def solve_sylvester(left: Matrix, right: Matrix, total: Matrix) -> Matrix:
    """The W of least norm with left W + W right = total.

    Both matrices are symmetric, so their eigenvectors split the equation into single numbers. SciPy's solver, for any
    matrices, is slower and refuses singular ones, which features that are always 0 lead to.

    Args:
        left: (m, m) positive semi-definite.
        right: (d, d) positive semi-definite.
        total: (m, d)
    """
    p, U = eigh(left)
    q, Q = eigh(right)
    sums = p[:, None] + q
    rounding = 100 * np.finfo(np.float64).eps * max(sums.shape) * np.abs(sums).max()  # of the products
    solved = np.divide(U.T @ total @ Q, sums, out=np.zeros_like(sums), where=sums > rounding)
    solution: Matrix = U @ solved @ Q.T
    return solution
