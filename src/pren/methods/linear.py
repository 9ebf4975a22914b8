"""What methods share that are a few matrices on scaled features: reading, scaling, the order of classes, saving."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from torch import Tensor

from pren.errors import PrenError
from pren.inputs import Inputs, chunks
from pren.methods.base import Method
from pren.methods.features import Matrix, Scaler, Scaling, flat, width
from pren.problem import Problem

Ridge = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1, le=10**6)]


class LinearMethod(Method):
    """A method that writes `_learn`, `_scorer` and `_shape`, and leaves the rest to this class.

    Images are taken as flat pixels. Classes are handed over in the order of their names, so that the order of the class
    table changes no bit.

    Attributes:
        weights_: What was learned, of the shape that `_shape` tells.
        scaler_: How features are scaled.
    """

    learned = "weights_"
    features: Scaling

    weights_: Matrix
    scaler_: Scaler

    @abstractmethod
    def _learn(self, problem: Problem) -> Matrix:
        """Learn the weights; `scaler_` is already there."""

    @abstractmethod
    def _scorer(self, signatures: Matrix) -> Callable[[Matrix], Matrix]:
        """From all signatures (L, m) in the order of the names, a function from features (n, d) to scores (n, L)."""

    @abstractmethod
    def _shape(self, d: int, seen: int, m: int) -> tuple[int, ...]:
        """The shape of the weights for d features, so many seen classes and m attributes."""

    def _fit(self, problem: Problem) -> None:
        width(problem.train, self.name)
        self.scaler_ = Scaler.fit(self.features, problem.train)
        weights = self._learn(problem)
        if not np.isfinite(weights).all():
            raise PrenError(f"{self.name} ended in weights that are no numbers: try smaller steps or other scaling.")
        self.weights_ = weights

    def _scores(self, inputs: Inputs) -> Matrix:
        order = self._order()
        score = self._scorer(self.classes_.signatures[order])
        by_name = np.concatenate([score(self.scaler_.transform(flat(chunk))) for chunk in chunks(inputs)])
        return self._calibrated(by_name[:, np.argsort(order)])

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors = {"weights": torch.from_numpy(self.weights_), **self.scaler_.state()}
        return tensors, {"attributes": self.classes_.signatures.shape[1]}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        d, m = int(np.prod(self.sample_shape_)), self.classes_.signatures.shape[1]
        weights = tensors["weights"]
        wanted = self._shape(d, int(self.classes_.seen.sum()), m)
        if weights.shape != wanted or weights.dtype != torch.float64:
            raise ValueError(f"weights are {weights.dtype} {tuple(weights.shape)}, not float64 {wanted}")
        if facts.get("attributes", m) != m:  # ESZSL did not always say it, and its weights tell
            raise ValueError(f"signatures have {m} attributes, not {facts['attributes']}")
        self.scaler_ = Scaler.restore(self.features, tensors, d)
        unknown = (set(facts) - {"attributes"}) | (set(tensors) - {"weights", *self.scaler_.state()})
        if unknown:
            raise ValueError(f"{self.name} does not learn {', '.join(sorted(unknown))}")
        self.weights_ = weights.numpy()

    def _seen(self) -> Matrix:
        """(|S|, m) the signatures of the seen classes, in the order of the names."""
        signatures: Matrix = self.classes_.signatures[self._seen_rows()]
        return signatures

    def _places(self, problem: Problem) -> NDArray[np.int64]:
        """(n,) the place of every labelled image's class among the seen ones, in the order of the names."""
        rows = self._seen_rows()
        places = np.empty(len(self.classes_), dtype=np.int64)
        places[rows] = np.arange(len(rows))
        return places[problem.labels]

    def _seen_rows(self) -> NDArray[np.int64]:
        order = self._order()
        return order[self.classes_.seen[order]]

    def _class_sums(self, problem: Problem, *, gram: bool = False) -> tuple[Matrix, Matrix, Matrix]:
        """Sums over the labelled images, in one pass of bounded memory.

        Returns:
            XᵀX (d, d), empty if `gram` does not ask for it; the sum of the features of every seen class (|S|, d), in
            the order of the names; and how many images each has (|S|,).
        """
        places, seen, d = self._places(problem), int(self.classes_.seen.sum()), width(problem.train, self.name)
        products, sums, start = np.zeros((d, d) if gram else (0, 0)), np.zeros((seen, d)), 0
        for chunk in chunks(problem.train):
            X = self.scaler_.transform(flat(chunk))
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
        ridge: What is added to its diagonal.
        right: (k, j)
        hint: The parameters that make it solvable, for the message.

    Raises:
        PrenError: If rounding leaves nothing to solve.
    """
    try:
        solution: Matrix = cho_solve(cho_factor(gram + ridge * np.eye(len(gram))), right)
    except LinAlgError as error:
        raise PrenError(f"The equations cannot be solved in double precision: take a larger {hint}.") from error
    return solution
