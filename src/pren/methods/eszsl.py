"""ESZSL (Romera-Paredes & Torr 2015): a bilinear compatibility in closed form."""

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
from pren.methods.features import Matrix, flat, width
from pren.methods.space import Real, Space
from pren.problem import Problem


class ESZSL(Method):
    """min_V ‖X V Aᵀ - Y‖² + g ‖V Aᵀ‖² + l ‖X V‖² + g l ‖V‖², X (n, d) features, A (|S|, m) signatures, Y in {-1, 1}.

    Inductive: the pool is not looked at. Images are taken as flat pixels. Reference: "An embarrassingly simple approach
    to zero-shot learning", ICML 2015.

    Args:
        feature_reg: g.
        signature_reg: l.
        gamma: GZSL: taken off the scores of seen classes.
    """

    name: ClassVar[str] = "eszsl"
    learned: ClassVar[str] = "weights_"
    space: ClassVar[Space] = {
        "feature_reg": Real(1e-3, 1e5, log=True),
        "signature_reg": Real(1e-4, 1e2, log=True),
    }

    def __init__(
        self,
        feature_reg: Annotated[float, Field(gt=0)] = 1.0,
        signature_reg: Annotated[float, Field(gt=0)] = 1.0,
        gamma: float = 0.0,
    ) -> None:
        self.feature_reg = feature_reg
        self.signature_reg = signature_reg
        self.gamma = gamma

    def _fit(self, problem: Problem) -> None:
        d = width(problem.train, "ESZSL")
        A = problem.classes.signatures[problem.classes.seen]
        column = np.cumsum(problem.classes.seen) - 1  # of a seen class among the seen ones
        gram, cross, start = np.zeros((d, d)), np.zeros((d, len(A))), 0
        for chunk in chunks(problem.train):
            X = flat(chunk)
            Y = np.full((len(X), len(A)), -1.0)
            Y[np.arange(len(X)), column[problem.labels[start : start + len(X)]]] = 1.0
            gram += X.T @ X
            cross += X.T @ Y
            start += len(X)
        left = _solve(gram, self.feature_reg, cross @ A)  # (d, m)
        self.weights_ = _solve(A.T @ A, self.signature_reg, left.T).T

    def _scores(self, inputs: Inputs) -> Matrix:
        compatibility = self.weights_ @ self.classes_.signatures.T
        return self._calibrated(np.concatenate([flat(chunk) @ compatibility for chunk in chunks(inputs)]))

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"weights": torch.from_numpy(self.weights_)}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        weights = tensors["weights"]
        wanted = (int(np.prod(self.sample_shape_)), self.classes_.signatures.shape[1])
        if weights.shape != wanted or weights.dtype != torch.float64:
            raise ValueError(f"weights are {weights.dtype} {tuple(weights.shape)}, not float64 {wanted}")
        self.weights_ = weights.numpy()


def _solve(gram: Matrix, ridge: float, right: Matrix) -> Matrix:
    """(gram + ridge I)⁻¹ right."""
    try:
        solution: Matrix = cho_solve(cho_factor(gram + ridge * np.eye(len(gram))), right)
    except LinAlgError as error:
        raise PrenError(
            "ESZSL cannot solve its equations in double precision: take a larger feature_reg and signature_reg."
        ) from error
    return solution
