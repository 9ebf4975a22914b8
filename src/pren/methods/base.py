"""What everything that can be fitted has in common."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from lightning_fabric import Fabric
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from pren.core.progressive import Round
from pren.core.pseudo import best_candidate
from pren.foundation.errors import PrenError
from pren.foundation.files import make_folder
from pren.images.preprocessing import Preprocessing
from pren.methods.declarations import take_declarations
from pren.methods.formulas import Columns, Flat, run
from pren.methods.learned import LearnedState
from pren.methods.module import Computed, ScoringModule
from pren.methods.params import Learned, Param, declared, param, validate
from pren.methods.preparation import PREPARATIONS, Matrix, Preparation
from pren.methods.refinement import REFINEMENTS, ScoredPool
from pren.methods.space import Choice, Space
from pren.problem import Problem, candidates_of
from pren.problem.inputs import CHUNK, Array, Inputs, as_inputs, pieces
from pren.problem.scoring import calibrated

log = logging.getLogger(__name__)
MOST_FEATURES = 20_000  # systems of d x d would not fit beyond
SCALINGS = Choice(("raw", "l2", "standard", "minmax", "whitened"))
Self = TypeVar("Self", bound="Method")


class Method(LearnedState, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is not typed
    """A zero-shot method with scikit-learn's conventions.

    A method declares its parameters and what it learns (see `pren.methods.params`), and writes `_fit` and `_scorer`.
    Where training has rounds that can be watched and resumed, it writes `fit_rounds`, which calls `_fit_refinement`
    after every round, and `training_state` instead of `_fit`. The constructor only stores its arguments; what is
    learned ends in an underscore.

    Attributes:
        classes_: The class table it was fitted with; columns of the scores stand in its order.
        setting_: "zsl" or "gzsl".
        sample_shape_: The shape of one input.
        preparation_: What features go through first; None where images go to a backbone.
        refinement_: What scores go through before γ.
        extractor_: What made the features it was fitted with; None if that is not known, or for images.
        tail_: The weights of that extractor's last stages, if they have learned the seen classes; None if not.
        preprocessing_: What image files are brought to; None where inputs are arrays.
        chosen_gamma_: The γ that was chosen on held-out classes and stands for the parameter; None if none was.
    """

    name: ClassVar[str]
    rehearsals: ClassVar[int] = 10  # how often `pren fit` rehearses it on held-out classes by default
    one_space: ClassVar[bool] = False  # whether it needs features and signatures of one space, so of one length
    learns_given: ClassVar[bool] = False  # whether it learns from `Problem.given` itself; refinements always do
    log_shares: ClassVar[bool] = False  # whether scores are logarithms of shares, up to a constant for each input
    params: ClassVar[Mapping[str, Param]]
    space: ClassVar[Space]  # what is worth tuning on validation classes

    features: str = param(
        "raw",
        "How features are prepared, by name; images that go to a backbone stay as they are.",
        among=PREPARATIONS,
        search=SCALINGS,
    )
    refinement: str = param(
        "none",
        "What scores go through, learned from the pool, by name; see `pren.methods.refinement`.",
        among=REFINEMENTS,
        search=Choice(("none", "soft-kmeans", "label-propagation")),
    )
    balance: float = param(
        0.0,
        "How strongly a refinement holds the unseen classes of the pool to equal size, from 0 to 1.",
        ge=0,
        le=1,
        search=Choice((0.0, 0.5)),
    )
    gamma: float = param(0.0, "γ: in GZSL, taken off the scores of seen classes; `pren fit` chooses it when not given.")

    extractor_: dict[str, Any] | None = None
    tail_: dict[str, Tensor] | None = None
    preprocessing_: Preprocessing | None = None
    chosen_gamma_: float | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_declarations(cls)

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
        self,
        problem: Problem,
        state: dict[str, Tensor] | None = None,
        fabric: Fabric | None = None,
        start: Method | None = None,
    ) -> Iterator[Round]:
        """Fit step by step.

        Args:
            problem: What to learn.
            state: What `training_state` returned after some round, to go on from there with the model as it is. Of
                several processes, the first one's model counts.
            fabric: As for `fit`.
            start: A model of the same kind to start from, maybe of other unseen classes or of another pool; what fits
                in one go has no use for it.

        Yields:
            Every finished round; nothing for methods that fit in one go.
        """
        if state is not None:
            raise PrenError("no-rounds", f"{self.name} fits in one go: there is nothing to resume.")
        self._begin(problem, fresh=True)
        self._fit(problem)
        self._fit_refinement(problem)
        yield from ()

    def check_processes(self, processes: int) -> None:
        """Refuse to be fitted by more processes than can share the work."""
        if processes > 1:
            raise PrenError("one-process", f"{self.name} is fitted by one process: leave --devices and --nodes out.")

    def scores(self, inputs: Inputs | Array) -> NDArray[np.float64]:
        """Score every class.

        Args:
            inputs: N images or feature vectors of the shape that the method was fitted with.

        Returns:
            (N, L), larger is better, columns in the order of the class table.
        """
        wanted = self._ready(inputs)
        return self._run(self._whole(), wanted)

    def predict(self, inputs: Inputs | Array, among: str | None = None) -> NDArray[np.str_]:
        """Name the best class of every input.

        Args:
            inputs: N images or feature vectors.
            among: "unseen", "seen" or "all"; by default "unseen" in ZSL and "all" in GZSL.

        Returns:
            (N,) names of classes.
        """
        rows = best_candidate(self.scores(inputs), self.classes_.among(among or candidates_of(self.setting_)))
        return self.classes_.named(rows)

    def predict_proba(self, inputs: Inputs | Array, among: str | None = None) -> NDArray[np.float64]:
        """The share of each class in each input, by the method's own model; `pren.assess` says how far to trust labels.

        Args:
            inputs: N inputs.
            among: As for `predict`.

        Returns:
            (N, L), rows of sum 1, 0 for classes that are no candidates.

        Raises:
            PrenError: If its scores are no logarithms of shares (`log_shares`).
        """
        from pren.methods.shares import predict_proba  # names other methods

        return predict_proba(self, inputs, among)

    def embed(self, inputs: Inputs | Array) -> NDArray[np.float64]:
        """Features as the method sees them: N images or feature vectors -> (N, d), prepared or of its backbone."""
        return self._features(self._ready(inputs))

    def attribute_weights(self, inputs: Inputs | Array) -> NDArray[np.float64] | None:
        """How much every attribute counts for each input, where a score is a sum over the attributes of a class.

        Args:
            inputs: N images or feature vectors.

        Returns:
            w (N, m) so that scores without γ are w · a_c for the signature a_c; None if they are no such sum.
        """
        return None

    def module(self) -> nn.Module:
        """A copy of the fitted model as one module: inputs (N, *sample_shape) -> (N, L) what `scores` gives.

        Raises:
            PrenError: If it is not a function of one image that torch can compute.
        """
        self._check_fitted()
        module = deepcopy(self._whole()).cpu().requires_grad_(False)
        for part in module.modules():
            if isinstance(part, Computed):
                raise PrenError(
                    "export-unsupported",
                    f"{self.name} cannot be exported: {part.why}. Take another method, or label with 'pren predict'.",
                )
        return module

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder, which is made if need be."""
        from pren.methods.storage import save_model  # the storage knows all methods

        self._check_fitted()
        make_folder(Path(folder))
        save_model(self, Path(folder))

    @classmethod
    def load(cls: type[Self], folder: str | Path) -> Self:
        """Read a model that `save` wrote."""
        from pren.methods.storage import load_model

        method = load_model(folder)
        if not isinstance(method, cls):
            raise PrenError("other-method", f"{folder} holds a {type(method).__name__}, not a {cls.__name__}.")
        return method

    def with_class(self: Self, name: str, signature: Matrix) -> Self:
        """A copy that knows one more unseen class; see `pren.methods.classes`."""
        from pren.methods.classes import with_class  # which knows this class

        return with_class(self, name, signature)

    def without_class(self: Self, name: str) -> Self:
        """A copy that knows an unseen class less."""
        from pren.methods.classes import without_class

        return without_class(self, name)

    def training_state(self) -> dict[str, Tensor]:
        """Everything beyond the model that resuming needs."""
        return {}

    @abstractmethod
    def _scorer(self) -> nn.Module:
        """What scores prepared features: (n, d) in double precision -> (n, L), without refinement and γ.

        Columns stand in the order of the class table. A function of NumPy's is `pren.methods.module.Computed`.
        """

    def _parts(self) -> tuple[nn.Module, nn.Module]:
        """What makes features (N, d) of inputs, and what scores them (N, L), without refinement and γ."""
        return self._feature_module(), self._scorer()

    def _feature_module(self) -> nn.Module:
        """What makes features (N, d), as a refinement takes them, of inputs."""
        assert self.preparation_ is not None
        return nn.Sequential(Flat(), self.preparation_)

    def _whole(self, *, with_gamma: bool = True) -> ScoringModule:
        """All that happens to an input, as one module that shares its memory with the model."""
        gamma = self.gamma if self.chosen_gamma_ is None else self.chosen_gamma_
        shift = -calibrated(np.zeros((1, len(self.classes_))), self.classes_, self.setting_, gamma * with_gamma)[0]
        return ScoringModule(*self._parts(), self._refiner(), shift).eval()

    def _refiner(self) -> nn.Module | None:
        """What refines scores, given what the scorer takes; None for nothing."""
        return self.refinement_ if self.refinement_.changes_scores else None

    def _run(self, module: nn.Module, inputs: Inputs, fabric: Fabric | None = None) -> Matrix:
        """What a module gives for all inputs (N, ...), a few at a time; with a fabric, by all processes together."""
        return run(module.cpu(), inputs)

    def _fit(self, problem: Problem) -> None:
        raise NotImplementedError

    def _take_in(self) -> None:
        """Make room for the last class of `classes_`, which nothing was learned about.

        Where no array is learned for single classes, the scores are a function of the signatures, and there is nothing
        to do.

        Raises:
            PrenError: If it cannot be.
        """
        if any("L" in known.shape for known in declared(type(self), Learned).values()):
            raise self._no_room()

    def _leave_out(self, place: int) -> None:
        """Forget a class that `classes_` has no longer, by its place among all names; declared arrays are done."""

    def _no_room(self) -> PrenError:
        new = self.classes_.names[-1]
        return PrenError(
            "class-fixed", f"{self.name} learns each class for itself, so it cannot take in {new!r}: fit again with it."
        )

    def _begin(self, problem: Problem, *, fresh: bool) -> None:
        """Check the parameters, forget an older model if a fresh one is wanted, and remember the kind of problem."""
        self.set_params(**validate(type(self), self.get_params(deep=False)))
        if fresh:
            for attribute in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, attribute)
        self.classes_ = problem.classes
        self.setting_ = problem.setting
        self.sample_shape_ = problem.train.sample_shape
        self.extractor_, self.tail_ = problem.extractor, problem.tail
        given, _ = problem.decided()
        if len(given) and not (self.learns_given or REFINEMENTS[self.refinement].changes_scores):
            log.warning(
                "%s does not learn from labels given to images of the pool (%d here): add --set "
                "refinement=soft-kmeans, or take --method pren-pool.",
                self.name,
                len(given),
            )
        if "preparation_" not in vars(self):
            self.preparation_ = self._fit_preparation(problem)

    def _fit_preparation(self, problem: Problem) -> Preparation | None:
        d = int(np.prod(self.sample_shape_))
        if d > MOST_FEATURES:
            raise PrenError(
                "features-needed",
                f"{self.name} takes features, not images of {d} numbers: extract them first (--frozen).",
            )
        return problem.once(f"features={self.features}", partial(PREPARATIONS[self.features].fit, problem))

    def _fit_refinement(self, problem: Problem, fabric: Fabric | None = None) -> None:
        """Learn the refinement from the pool as the method scores it now."""
        kind, candidates = REFINEMENTS[self.refinement], self._candidates()
        if not kind.changes_scores:
            self.refinement_ = kind(candidates)
            return
        pool, train = self._preprocessed(problem.pool), self._preprocessed(problem.train)
        among, left = np.flatnonzero(candidates[problem.labels]), problem.undecided()
        scores, features = self._scores(pool, fabric), self._features(pool, fabric)
        images, given = problem.decided()
        self.refinement_ = kind.fit(
            ScoredPool(
                scores=scores[left],
                features=features[left],
                classes=self.classes_,
                candidates=candidates,
                labelled=np.concatenate([self._features(train.select(among), fabric), features[images]]),
                labels=np.concatenate([problem.labels[among], given]),
                balance=self.balance,
            )
        )

    def _scores(self, inputs: Inputs, fabric: Fabric | None = None) -> Matrix:
        """(N, L) scores, without refinement and γ."""
        return self._run(nn.Sequential(*self._parts()), inputs, fabric)

    def _check_fitted(self) -> None:
        if not self._is_fitted() or "refinement_" not in vars(self):
            raise PrenError("not-fitted", f"This {type(self).__name__} is not fitted yet: call fit(problem) first.")

    def _ready(self, inputs: Inputs | Array) -> Inputs:
        """Inputs as the method was fitted with."""
        self._check_fitted()
        wanted = self._preprocessed(as_inputs(inputs))
        if wanted.sample_shape != self.sample_shape_:
            raise PrenError(
                "inputs-shape", f"The model takes inputs of shape {self.sample_shape_} each, not {wanted.sample_shape}."
            )
        return wanted

    def _preprocessed(self, inputs: Inputs) -> Inputs:
        """Inputs, and image files brought to the size that the method was fitted with."""
        return inputs if self.preprocessing_ is None else inputs.prepared(self.preprocessing_)

    def _features(self, inputs: Inputs, fabric: Fabric | None = None) -> Matrix:
        """(N, d) prepared features of all inputs, or those that a backbone makes."""
        return self._run(self._feature_module(), inputs, fabric).astype(np.float64, copy=False)

    def _chunks(self, inputs: Inputs) -> Iterator[Matrix]:
        """The same a few at a time."""
        for piece in pieces(inputs, CHUNK):
            yield self._features(piece)

    def _in_table_order(self, scorer: nn.Module) -> nn.Module:
        """A scorer whose columns stand in the order of the names."""
        return nn.Sequential(scorer, Columns(np.argsort(self._order())))

    def _order(self) -> NDArray[np.int64]:
        """(L,) rows of the class table in the order of the names, in which chance and networks have the classes."""
        return np.argsort(np.array(self.classes_.names), kind="stable")


take_declarations(Method)
