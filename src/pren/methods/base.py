"""What everything that can be fitted has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from lightning_fabric import Fabric
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor

from pren.core.progressive import Round
from pren.errors import PrenError
from pren.inputs import Array, Inputs, as_inputs
from pren.methods.params import validate
from pren.methods.space import Space
from pren.problem import ClassTable, Problem, Setting, candidates_of
from pren.vision.preprocessing import Preprocessing

Self = TypeVar("Self", bound="Method")


class Method(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is not typed
    """A zero-shot method with scikit-learn's conventions.

    The constructor only stores its arguments; what is learned ends in an underscore. A method writes `_fit` (or, where
    training has rounds that can be watched and resumed, `fit_rounds` and `training_state`), `_scores`, and
    `_state` / `_restore` for saving.

    Attributes:
        classes_: The class table it was fitted with; columns of the scores stand in its order.
        setting_: "zsl" or "gzsl".
        sample_shape_: The shape of one input.
        extractor_: What made the features it was fitted with; None if nobody knows, or for images.
        preprocessing_: What image files are brought to; None where inputs are arrays.
    """

    name: ClassVar[str]
    learned: ClassVar[str]  # the attribute that is there once there is a model
    space: ClassVar[Space] = {}  # what is worth tuning on validation classes
    added: ClassVar[Mapping[str, Any]] = {}  # parameters that came later, with the value that means the same as before
    gamma: float

    classes_: ClassTable
    setting_: Setting
    sample_shape_: tuple[int, ...]
    extractor_: dict[str, Any] | None = None
    preprocessing_: Preprocessing | None = None

    def fit(self: Self, problem: Problem, fabric: Fabric | None = None) -> Self:
        """Fit to the labelled images, the signatures and, if the method is transductive, the pool.

        Args:
            problem: What to learn.
            fabric: Where to compute, launched; None for one process on the best device there is.
        """
        for _ in self.fit_rounds(problem, fabric=fabric):
            pass
        return self

    def fit_rounds(
        self, problem: Problem, state: dict[str, Tensor] | None = None, fabric: Fabric | None = None
    ) -> Iterator[Round]:
        """Fit step by step.

        Args:
            problem: What to learn.
            state: What `training_state` returned after some round, to go on from there with the model as it is. Of
                several processes, the first one's model counts.
            fabric: As for `fit`.

        Yields:
            Every finished round; nothing for methods that fit in one go.
        """
        if state is not None:
            raise PrenError(f"{self.name} fits in one go: there is nothing to resume.")
        self._begin(problem, fresh=True)
        self._fit(problem)
        yield from ()

    def check_processes(self, processes: int) -> None:
        """Refuse to be fitted by more processes than can share the work."""
        if processes > 1:
            raise PrenError(f"{self.name} is fitted by one process: leave --devices and --nodes out.")

    def scores(self, inputs: Inputs | Array) -> NDArray[np.float64]:
        """Score every class.

        Args:
            inputs: N images or feature vectors of the shape that the method was fitted with.

        Returns:
            (N, L), larger is better, columns in the order of the class table.
        """
        self._check_fitted()
        wanted = as_inputs(inputs)
        if self.preprocessing_ is not None:
            wanted = wanted.prepared(self.preprocessing_)
        if wanted.sample_shape != self.sample_shape_:
            raise PrenError(f"The model takes inputs of shape {self.sample_shape_} each, not {wanted.sample_shape}.")
        return self._scores(wanted)

    def predict(self, inputs: Inputs | Array, among: str | None = None) -> NDArray[np.int64]:
        """Predict classes.

        Args:
            inputs: N images or feature vectors.
            among: "unseen", "seen" or "all"; by default "unseen" in ZSL and "all" in GZSL.

        Returns:
            (N,) rows of the class table.
        """
        scores = self.scores(inputs)
        candidates = np.flatnonzero(self.classes_.among(among or candidates_of(self.setting_)))
        predicted: NDArray[np.int64] = candidates[scores[:, candidates].argmax(axis=1)]
        return predicted

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder, which is made if need be."""
        from pren.methods.storage import save_model  # the storage knows all methods

        self._check_fitted()
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PrenError(f"Cannot make the folder {folder}: {error.strerror or error}.") from error
        save_model(self, Path(folder))

    @classmethod
    def load(cls: type[Self], folder: str | Path) -> Self:
        """Read a model that `save` wrote."""
        from pren.methods.storage import load_model

        method = load_model(folder)
        if not isinstance(method, cls):
            raise PrenError(f"{folder} holds a {type(method).__name__}, not a {cls.__name__}.")
        return method

    def training_state(self) -> dict[str, Tensor]:
        """Everything beyond the model that resuming needs."""
        return {}

    def _check_fitted(self) -> None:
        if not hasattr(self, self.learned):
            raise PrenError(f"This {type(self).__name__} is not fitted yet: call fit(problem) first.")

    def _begin(self, problem: Problem, *, fresh: bool) -> None:
        """Check the parameters, forget an older model if a fresh one is wanted, and remember the problem's looks."""
        self.set_params(**validate(type(self), self.get_params(deep=False)))
        if fresh and hasattr(self, self.learned):
            delattr(self, self.learned)
        self.classes_ = problem.classes
        self.setting_ = problem.setting
        self.sample_shape_ = problem.train.sample_shape
        self.extractor_ = problem.extractor

    def _order(self) -> NDArray[np.int64]:
        """(L,) rows of the class table in the order of the names, in which chance and networks have the classes."""
        return np.argsort(np.array(self.classes_.names), kind="stable")

    def _fit(self, problem: Problem) -> None:
        raise NotImplementedError

    @abstractmethod
    def _scores(self, inputs: Inputs) -> NDArray[np.float64]: ...

    @abstractmethod
    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What was learned: tensors, and JSON-ready facts."""

    @abstractmethod
    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """The inverse of `_state`; the attributes of `Method` are already there.

        Raises:
            ValueError: If they do not belong together. (KeyError, TypeError and RuntimeError mean the same.)
        """

    def _calibrated(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Calibrated stacking: in GZSL, γ is taken off every seen class."""
        return scores - self.gamma * self.classes_.seen if self.setting_ == "gzsl" else scores
