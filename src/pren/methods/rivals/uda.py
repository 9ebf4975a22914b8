"""UDA (Kodirov et al. 2015): unsupervised domain adaptation, with signatures as sparse codes of inputs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from torch import nn

from pren.foundation.errors import PrenError
from pren.methods.base import SCALINGS, Method
from pren.methods.formulas import Cosine, on_arrays
from pren.methods.module import Computed
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.rivals.posterior import eszsl_weights, mean_length, posterior
from pren.methods.space import Real
from pren.problem import Problem

STEPS = 1000  # of FISTA, at most
PRECISION = 1e-6  # FISTA ends when no code moves by more


class UDA(Method):
    """min_{D,Y} ‖X - Y Dᵀ‖² + λ1 ‖D - D_s‖² + λ2 Σ_ic w_ic ‖y_i - a_c‖² + λ3 ‖Y‖₁, ‖d_k‖ ≤ 1.

    X (n, d) is the pool, D (d, m) a dictionary whose codes Y (n, m) live in the space of the signatures, D_s the
    dictionary of the labelled inputs (ridge regression from signatures to features), w_ic = p(c|x_i) of an inductive
    model. Codes (by FISTA) and dictionary (in closed form, then columns longer than 1 are shortened) take turns. A
    class scores the cosine of its signature and the input's code. New inputs get their codes in the same way, from
    their own w and the adapted dictionary. In GZSL w covers all classes (see `pren.methods.rivals.posterior`).

    † Re-implemented from a description, without the paper. Choices made here: w comes from ESZSL (the paper: IAP) and
    is fixed; the nearest signature wins (the paper also spreads labels on a graph).

    Image arrays become flat pixels. Reference: "Unsupervised domain adaptation for zero-shot learning", ICCV 2015.

    Attributes:
        dictionary_: (d, m) D.
        compatibility_: (d, m) of the inductive model.
        length_: (1,) the mean length of prepared features, which are divided by it.
    """

    name: ClassVar[str] = "uda"
    rehearsals: ClassVar[int] = 3  # a fit can take minutes

    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)
    feature_reg: float = param(1.0, "Of the inductive model, see `ESZSL`.", gt=0, search=Real(1e-2, 1e2, log=True))
    signature_reg: float = param(0.1, "Of the inductive model, see `ESZSL`.", gt=0, search=Real(1e-3, 1e1, log=True))
    sharpness: float = param(
        2.0, "How sharp w is, see `pren.methods.rivals.posterior.posterior`.", gt=0, search=Real(0.5, 10.0, log=True)
    )
    source_reg: float = param(1.0, "The ridge of D_s.", gt=0)
    dictionary_reg: float = param(1.0, "λ1.", gt=0, search=Real(1e-1, 1e4, log=True))
    code_reg: float = param(0.1, "λ2.", gt=0, search=Real(1e-2, 1e1, log=True))
    sparsity: float = param(0.001, "λ3.", ge=0, search=Real(1e-5, 1e-2, log=True))
    rounds: int = param(3, "How often the dictionary is adapted; with 0 it stays D_s.", ge=0, le=1000)

    dictionary_: Matrix = learned("d", "m")
    compatibility_: Matrix = learned("d", "m")
    length_: Matrix = learned("one")

    def _fit(self, problem: Problem) -> None:
        X = self._features(problem.train)
        self.length_ = mean_length(X)
        X = X / self.length_
        self.compatibility_ = eszsl_weights(X, problem.labels, problem.classes, self.feature_reg, self.signature_reg)
        S = problem.classes.signatures[problem.labels]
        source = bounded(adapted(X, S, np.zeros((X.shape[1], S.shape[1])), self.source_reg))
        D, pool = source, self._features(problem.pool) / self.length_
        targets = self._targets(pool)
        Y = targets
        for _ in range(self.rounds):
            Y = codes(pool, D, targets, self.code_reg, self.sparsity, Y)
            D = bounded(adapted(pool, Y, source, self.dictionary_reg))
        self.dictionary_ = D

    def _scorer(self) -> nn.Module:
        cosine = Cosine(self.classes_.signatures)

        def score(x: Matrix) -> Matrix:
            X = x / self.length_
            targets = self._targets(X)
            Y = codes(X, self.dictionary_, targets, self.code_reg, self.sparsity, targets)
            return on_arrays(cosine, Y)

        return Computed(score, f"it finds the code of an input in up to {STEPS} steps")

    def _targets(self, X: Matrix) -> Matrix:
        """Σ_c w_ic a_c: (n, m) where the inductive model expects the codes of inputs (n, d)."""
        A = self.classes_.signatures
        w = posterior(X @ self.compatibility_ @ A.T, self.classes_, self.setting_, self.sharpness)
        return w @ A


def codes(X: Matrix, D: Matrix, targets: Matrix, code_reg: float, sparsity: float, start: Matrix) -> Matrix:
    """The Y (n, m) that minimises ‖x_i - D y_i‖² + λ2 ‖y_i - t_i‖² + λ3 ‖y_i‖₁ for every input, by FISTA.

    As Σ_c w_ic = 1, Σ_c w_ic ‖y - a_c‖² and ‖y - t_i‖² with t_i = Σ_c w_ic a_c differ by a constant. The problem is
    strongly convex, so the momentum is constant and the error shrinks by a factor in every step.

    Args:
        X: (n, d).
        D: (d, m).
        targets: (n, m) t.
        code_reg: λ2.
        sparsity: λ3.
        start: (n, m) where to begin.
    """
    H = D.T @ D + code_reg * np.eye(D.shape[1])
    if not np.isfinite(H).all():  # the numbers of D are far too large
        return np.full(targets.shape, np.nan)
    linear = X @ D + code_reg * targets
    steepest = float(np.linalg.eigvalsh(H)[-1])
    root = np.sqrt(code_reg / steepest)  # no direction is flatter than λ2
    momentum = (1 - root) / (1 + root)
    Y, ahead = start, start
    for _ in range(STEPS):
        stepped = ahead - (ahead @ H - linear) / steepest
        new = np.sign(stepped) * np.maximum(np.abs(stepped) - sparsity / (2 * steepest), 0)
        moved = np.abs(new - Y).max(initial=0.0)
        ahead = new + momentum * (new - Y)
        Y = new
        if moved <= PRECISION * root:
            break
    return Y


def adapted(X: Matrix, Y: Matrix, near: Matrix, ridge: float) -> Matrix:
    """The D (d, m) that minimises ‖X - Y Dᵀ‖² + λ1 ‖D - near‖²."""
    gram = Y.T @ Y + ridge * np.eye(Y.shape[1])
    try:
        D: Matrix = cho_solve(cho_factor(gram), (X.T @ Y + ridge * near).T).T
    except LinAlgError as error:
        message = "The equations of UDA's dictionary are singular: take a larger source_reg and dictionary_reg."
        raise PrenError("singular", message) from error
    return D


def bounded(D: Matrix) -> Matrix:
    """Shorten columns longer than 1 to length 1."""
    short: Matrix = D / np.maximum(np.linalg.norm(D, axis=0), 1.0)
    return short
