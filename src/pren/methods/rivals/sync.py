"""SynC (Changpinyo et al. 2016): the classifier of a class is a mixture of those of similar classes."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import pinv
from scipy.spatial.distance import cdist, pdist
from scipy.special import softmax
from torch import nn

from pren.methods.base import SCALINGS
from pren.methods.formulas import Affine, on_arrays, unit
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.rivals.classifiers import Loss, crammer_singer, fit_classifiers, one_versus_other
from pren.methods.rivals.linear import LinearMethod
from pren.methods.space import Choice, Real
from pren.problem import Problem


class SynC(LinearMethod):
    """w_c = Σ_r s_cr v_r, s_cr = softmax_r(-σ ‖a_c - a_r‖²) over the seen classes r, scores w_cᵀx.

    Inductive. Reference: "Synthesized classifiers for zero-shot learning", CVPR 2016; this is the fast version of the
    authors' journal code, in which the "phantom" classes sit on the seen ones. The seen classes' classifiers W are
    fitted freely, by min_W loss + reg / 2 ‖W‖², and V = S⁺W, S the similarities of the seen classes.

    Signatures are brought to unit length and divided by the median distance, here of the seen classes; the paper leaves
    open of which.

    Attributes:
        weights_: V, (|S|, d), classes in the order of their names.
    """

    name: ClassVar[str] = "sync"

    loss: Literal["ovo", "cs", "struct"] = param(
        "ovo",
        "'ovo' for squared hinge losses of one class against all others; 'cs' for Crammer and Singer's, squared; "
        "'struct' for the same with the distance of the signatures as the margin.",
        search=Choice(("ovo", "cs", "struct")),
    )
    reg: float = param(2.0**-18, "The weight of ‖W‖² / 2.", gt=0, search=Real(2.0**-30, 2.0**-8, log=True))
    sharpness: float = param(1.0, "σ.", gt=0, search=Real(2.0**-5, 2.0**5, log=True))
    iterations: int = param(200, "The most steps of L-BFGS.", ge=1, le=10**6)
    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)

    weights_: Matrix = learned("S", "d")

    def _learn(self, problem: Problem) -> Matrix:
        A = self._seen()
        X, labels = self._features(problem.train), self._places(problem)
        W = fit_classifiers(X, labels, len(A), self._classifier_loss(A), self.reg, self.iterations)
        phantoms: Matrix = pinv(similarity(A, A, self.sharpness)) @ W
        return phantoms

    def _classifier_loss(self, A: Matrix) -> Loss:
        if self.loss == "ovo":
            return one_versus_other
        return crammer_singer(np.ones((len(A), len(A))) if self.loss == "cs" else scaled_distances(A, A))

    def _scorer_of(self, signatures: Matrix) -> nn.Module:
        return Affine((similarity(signatures, self._seen(), self.sharpness) @ self.weights_).T)


def similarity(signatures: Matrix, phantoms: Matrix, sharpness: float) -> Matrix:
    """s (L, R), rows of sum 1, from signatures (L, m) of classes and (R, m) of phantoms."""
    similar: Matrix = softmax(-sharpness * scaled_distances(signatures, phantoms) ** 2, axis=1)
    return similar


def scaled_distances(signatures: Matrix, phantoms: Matrix) -> Matrix:
    """(L, R) distances of unit signatures, in units of the median distance between two different phantoms."""
    signatures, phantoms = on_arrays(unit, signatures), on_arrays(unit, phantoms)
    among = pdist(phantoms)
    among = among[among > 0]
    distances: Matrix = cdist(signatures, phantoms)
    return distances / np.median(among) if len(among) else distances
