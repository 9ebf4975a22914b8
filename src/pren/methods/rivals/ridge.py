"""Ridge s→v: class means predicted from signatures; the nearest one wins. The simplest rival."""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import nn

from pren.methods.base import SCALINGS
from pren.methods.formulas import Cosine, Distances
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.rivals.linear import LinearMethod, solve_ridge
from pren.methods.space import Choice, Real
from pren.problem import Problem


class RidgeS2V(LinearMethod):
    """min_W ‖A W - M‖² + l ‖W‖², A (|S|, m) signatures, M (|S|, d) the mean features of the classes.

    Inductive. Every class counts the same, whatever its size. In GZSL the means of seen classes are predicted too.
    Predicting features, not signatures, avoids hubs: classes that are nearest to most inputs ("Ridge regression,
    hubness, and zero-shot learning", ECML 2015, which regresses single inputs).

    Attributes:
        weights_: W, (m, d).
    """

    name: ClassVar[str] = "ridge-s2v"

    reg: float = param(0.1, "l.", gt=0, search=Real(1e-3, 1e1, log=True))
    distance: Literal["cosine", "euclid"] = param(
        "cosine", "The distance to class means.", search=Choice(("cosine", "euclid"))
    )
    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)

    weights_: Matrix = learned("m", "d")

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        _, sums, counts = self._class_sums(problem)
        return solve_ridge(A.T @ A, self.reg, A.T @ (sums / counts[:, None]), hint="reg")

    def _scorer_of(self, signatures: Matrix) -> nn.Module:
        means = signatures @ self.weights_
        return Distances(means) if self.distance == "euclid" else Cosine(means)
