"""UDA (Kodirov et al. 2015): unsupervised domain adaptation, with signatures as sparse codes of images."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from torch import Tensor

from pren.errors import PrenError
from pren.inputs import Inputs, chunks
from pren.methods.base import Method
from pren.methods.features import Matrix, Scaler, Scaling, flat, width
from pren.methods.params import Rate
from pren.methods.posterior import compatibility, posterior, unit_scaler
from pren.methods.saved import matrix
from pren.methods.space import Choice, Real, Space
from pren.problem import Problem

STEPS = 1000  # of FISTA, at most
PRECISION = 1e-6  # FISTA ends when no code moves by more


class UDA(Method):
    """min_{D,Y} ‖X - Y Dᵀ‖² + λ1 ‖D - D_s‖² + λ2 Σ_ic w_ic ‖y_i - a_c‖² + λ3 ‖Y‖₁, ‖d_k‖ ≤ 1.

    X (n, d) is the pool, D (d, m) a dictionary whose codes Y (n, m) live in the space of the signatures, D_s the
    dictionary of the labelled images (ridge regression from signatures to features), w_ic = p(c|x_i) of an inductive
    model. Codes (by FISTA) and dictionary (in closed form, then columns longer than 1 are shortened) take turns. A
    class scores the cosine between its signature and the image's code. An image outside the pool gets its code in the
    same way, from its own w and the adapted dictionary.

    In GZSL w goes over all classes, seen and unseen ones on an equal footing (see `pren.methods.posterior`).

    † Re-implemented from a description without the paper's text at hand. Left open there, and chosen here: w comes from
    ESZSL (the paper: IAP) and stays as it is; the nearest signature decides (the paper also spreads labels on a graph).

    Images are taken as flat pixels. Reference: "Unsupervised domain adaptation for zero-shot learning", ICCV 2015.

    Args:
        features: How to scale features; then images are brought to length 1 on average, which the bound on D suits.
        feature_reg: Of the inductive model, see `ESZSL`.
        signature_reg: Of the inductive model, see `ESZSL`.
        sharpness: How decided w is, see `pren.methods.posterior.posterior`.
        source_reg: The ridge of D_s.
        dictionary_reg: λ1.
        code_reg: λ2.
        sparsity: λ3.
        rounds: How often the dictionary is adapted; 0 leaves D_s.
        gamma: GZSL: taken off the scores of seen classes.

    Attributes:
        dictionary_: (d, m) D.
        compatibility_: (d, m) of the inductive model.
    """

    name: ClassVar[str] = "uda"
    learned: ClassVar[str] = "dictionary_"
    space: ClassVar[Space] = {
        "features": Choice(("raw", "l2", "standard", "minmax")),
        "feature_reg": Real(1e-2, 1e2, log=True),
        "signature_reg": Real(1e-3, 1e1, log=True),
        "sharpness": Real(0.5, 10.0, log=True),
        "dictionary_reg": Real(1e-1, 1e4, log=True),
        "code_reg": Real(1e-2, 1e1, log=True),
        "sparsity": Real(1e-5, 1e-2, log=True),
    }

    def __init__(
        self,
        features: Scaling = "standard",
        feature_reg: Rate = 10.0,
        signature_reg: Rate = 0.1,
        sharpness: Rate = 2.0,
        source_reg: Rate = 1.0,
        dictionary_reg: Rate = 1.0,
        code_reg: Rate = 0.1,
        sparsity: Annotated[float, Field(ge=0)] = 0.001,
        rounds: Annotated[int, Field(ge=0, le=1000)] = 3,
        gamma: float = 0.0,
    ) -> None:
        self.features = features
        self.feature_reg = feature_reg
        self.signature_reg = signature_reg
        self.sharpness = sharpness
        self.source_reg = source_reg
        self.dictionary_reg = dictionary_reg
        self.code_reg = code_reg
        self.sparsity = sparsity
        self.rounds = rounds
        self.gamma = gamma

    def _fit(self, problem: Problem) -> None:
        width(problem.train, "UDA")
        self.scaler_, X = unit_scaler(self.features, problem.train)
        self.compatibility_ = compatibility(X, problem.labels, problem.classes, self.feature_reg, self.signature_reg)
        S = problem.classes.signatures[problem.labels]
        source = shortened(adapted(X, S, np.zeros((X.shape[1], S.shape[1])), self.source_reg))
        D, pool = source, self.scaler_(problem.pool)
        targets = self._targets(pool)
        Y = targets
        for _ in range(self.rounds):
            Y = codes(pool, D, targets, self.code_reg, self.sparsity, Y)
            D = shortened(adapted(pool, Y, source, self.dictionary_reg))
        self.dictionary_ = D

    def _scores(self, inputs: Inputs) -> Matrix:
        A = self.classes_.signatures
        A = A / np.linalg.norm(A, axis=1, keepdims=True)
        parts = []
        for chunk in chunks(inputs):
            X = self.scaler_.transform(flat(chunk))
            targets = self._targets(X)
            Y = codes(X, self.dictionary_, targets, self.code_reg, self.sparsity, targets)
            length = np.linalg.norm(Y, axis=1, keepdims=True)
            parts.append(np.divide(Y, length, out=np.zeros_like(Y), where=length > 0) @ A.T)
        return self._calibrated(np.concatenate(parts))

    def _targets(self, X: Matrix) -> Matrix:
        """Σ_c w_ic a_c: (n, m) where the inductive model expects the codes of images (n, d)."""
        A = self.classes_.signatures
        w = posterior(X @ self.compatibility_ @ A.T, self.classes_, self.setting_, self.sharpness)
        return w @ A

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        arrays = {"dictionary": self.dictionary_, "compatibility": self.compatibility_}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        return {**tensors, **self.scaler_.state()}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        d, m = int(np.prod(self.sample_shape_)), self.classes_.signatures.shape[1]
        self.scaler_ = Scaler.restore(self.features, tensors, d)
        self.compatibility_ = matrix(tensors, "compatibility", d, m)
        self.dictionary_ = matrix(tensors, "dictionary", d, m)


def codes(X: Matrix, D: Matrix, targets: Matrix, code_reg: float, sparsity: float, start: Matrix) -> Matrix:
    """The Y (n, m) that minimises ‖x_i - D y_i‖² + λ2 ‖y_i - t_i‖² + λ3 ‖y_i‖₁ for every image, by FISTA.

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
        raise PrenError("UDA cannot solve for its dictionary: take a larger source_reg and dictionary_reg.") from error
    return D


def shortened(D: Matrix) -> Matrix:
    """Columns longer than 1 brought to length 1."""
    short: Matrix = D / np.maximum(np.linalg.norm(D, axis=0), 1.0)
    return short
