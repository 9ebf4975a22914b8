"""Methods with one array of weights on prepared features."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from torch import nn

from pren.foundation.errors import PrenError
from pren.methods.base import Method
from pren.methods.formulas import Affine
from pren.methods.preparation import Matrix
from pren.problem import Problem
from pren.problem.inputs import Array, Inputs


class LinearMethod(Method):
    """A method that declares `weights_` and writes `_learn` and `_scorer_of`.

    Image arrays become flat pixels. Classes come in the order of their names, so the order of the class table does not
    matter.
    """

    weights_: Matrix

    @abstractmethod
    def _learn(self, problem: Problem) -> Matrix:
        """Learn the weights."""

    @abstractmethod
    def _scorer_of(self, signatures: Matrix) -> nn.Module:
        """A scorer (n, d) -> (n, L) from all signatures (L, m) in the order of the names."""

    def _attribute_map(self) -> Matrix | None:
        """(d, m) W if the score of a class is xᵀ W a_c; None if it is something else."""
        return None

    def attribute_weights(self, inputs: Inputs | Array) -> Matrix | None:
        """xᵀ W; None with a refinement."""
        weights = self._attribute_map()
        if weights is None or self.refinement_.changes_scores:
            return None
        return self._run(nn.Sequential(self._feature_module(), Affine(weights)), self._ready(inputs))

    def _fit(self, problem: Problem) -> None:
        weights = self._learn(problem)
        if not np.isfinite(weights).all():
            raise PrenError("diverged", f"Weights of {self.name} are not finite: try a smaller lr or other features.")
        self.weights_ = weights

    def _scorer(self) -> nn.Module:
        return self._in_table_order(self._scorer_of(self.classes_.signatures[self._order()]))

    def _seen(self) -> Matrix:
        """(|S|, m) the signatures of the seen classes, in the order of the names."""
        signatures: Matrix = self.classes_.signatures[self._seen_rows()]
        return signatures

    def _places(self, problem: Problem) -> NDArray[np.int64]:
        """(n,) the place of every labelled input's class among the seen ones, in the order of the names."""
        rows = self._seen_rows()
        places = np.empty(len(self.classes_), dtype=np.int64)
        places[rows] = np.arange(len(rows))
        return places[problem.labels]

    def _seen_rows(self) -> NDArray[np.int64]:
        order = self._order()
        return order[self.classes_.seen[order]]

    def _class_sums(self, problem: Problem, *, gram: bool = False) -> tuple[Matrix, Matrix, Matrix]:
        """Sums over the labelled inputs, in one pass of bounded memory.

        Returns:
            XᵀX (d, d), empty without `gram`; the sum of the features of every seen class (|S|, d), in the order of the
            names; and how many inputs each has (|S|,).
        """
        places, sizes = self._places(problem), self._sizes()
        d, seen = sizes["d"], sizes["S"]
        products, sums, start = np.zeros((d, d) if gram else (0, 0)), np.zeros((seen, d)), 0
        for X in self._chunks(problem.train):
            Y = np.eye(seen)[places[start : start + len(X)]]
            sums += Y.T @ X
            if gram:
                products += X.T @ X
            start += len(X)
        return products, sums, np.bincount(places, minlength=seen).astype(np.float64)


def solve_ridge(gram: Matrix, ridge: float, right: Matrix, *, hint: str) -> Matrix:
    """(gram + ridge I)⁻¹ right.

    Args:
        gram: (k, k) positive semi-definite.
        ridge: Added to its diagonal.
        right: (k, j)
        hint: The parameters to enlarge, for the message.

    Raises:
        PrenError: If the matrix is singular in double precision.
    """
    try:
        solution: Matrix = cho_solve(cho_factor(gram + ridge * np.eye(len(gram))), right)
    except LinAlgError as error:
        raise PrenError("singular", f"The equations are singular in double precision: take a larger {hint}.") from error
    return solution
