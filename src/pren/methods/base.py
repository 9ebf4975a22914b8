"""`Method`: what every method has."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
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
from pren.problem import ClassTable, Problem, candidates_of
from pren.problem.inputs import CHUNK, Array, Inputs, as_inputs, pieces
from pren.problem.scoring import calibrated
from pren.training.processes import Fabric

log = logging.getLogger(__name__)
MOST_FEATURES = 20_000  # systems of d x d would not fit beyond
SCALINGS = Choice(("raw", "l2", "standard", "minmax", "whitened"))
Self = TypeVar("Self", bound="Method")


class Method(LearnedState, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is not typed
    """A zero-shot method with scikit-learn's conventions.

    A method declares its parameters and learned arrays (see `pren.methods.params`), and writes `_fit` and `_scorer`.
    A method with rounds writes `fit_rounds`, which calls `_fit_refinement` after every round, and `training_state`
    instead of `_fit`. The constructor only stores its arguments; learned attributes end in an underscore.

    Attributes:
        classes_: The class table it was fitted with; columns of the scores have its order.
        setting_: "zsl" or "gzsl".
        sample_shape_: The shape of one input.
        preparation_: Prepares features; None where a backbone takes image arrays.
        refinement_: Refines scores, before γ.
        extractor_: What made the features; None if it is not known, or if inputs are image arrays.
        tail_: The weights of the extractor's last stages if they were fine-tuned, else None.
        preprocessing_: How image files are resized and scaled; None where inputs are arrays.
        chosen_gamma_: The γ that was chosen on held-out classes. It replaces `gamma`; None if none was chosen.
    """

    name: ClassVar[str]
    rehearsals: ClassVar[int] = 10  # how often `pren fit` rehearses it by default
    one_space: ClassVar[bool] = False  # whether features and signatures must be of one space, so of one length
    learns_given: ClassVar[bool] = False  # whether it learns from `Problem.given`; refinements always do
    log_shares: ClassVar[bool] = False  # whether scores are logarithms of shares, up to a constant for each input
    params: ClassVar[Mapping[str, Param]]
    space: ClassVar[Space]  # what `pren tune` tries

    features: str = param(
        "raw",
        "How features are prepared, by name. A backbone takes images as they are.",
        among=PREPARATIONS,
        search=SCALINGS,
    )
    refinement: str = param(
        "none",
        "How scores are refined with the pool, by name; see `pren.methods.refinement`.",
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
    gamma: float = param(0.0, "γ: in GZSL, subtracted from scores of seen classes; `pren fit` chooses it by default.")

    extractor_: dict[str, Any] | None = None
    tail_: dict[str, Tensor] | None = None
    preprocessing_: Preprocessing | None = None
    chosen_gamma_: float | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_declarations(cls)

    def fit(self: Self, problem: Problem, fabric: Fabric | None = None) -> Self:
        """Fit to the labelled inputs, the signatures and, if the method is transductive, the pool.

        Args:
            problem: What to learn.
            fabric: Where to compute, launched; None for one process on the best device.
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
        """Fit round by round.

        Args:
            problem: What to learn.
            state: What `training_state` returned after a round: training resumes there. With several processes, the
                model of the first one counts.
            fabric: As for `fit`.
            start: A model of the same method to start from. Its unseen classes and its pool may be others. Methods
                without rounds ignore it.

        Yields:
            Every finished round; nothing for methods without rounds.
        """
        if state is not None:
            raise PrenError("no-rounds", f"{self.name} has no rounds, so it cannot resume: fit again.")
        self._begin(problem, fresh=True)
        self._fit(problem)
        self._fit_refinement(problem)
        yield from ()

    @classmethod
    def check_classes(cls, table: ClassTable) -> None:
        """Refuse more classes than the method can compare, before minutes of extraction."""

    def check_processes(self, processes: int) -> None:
        """Refuse more processes than can share the work."""
        if processes > 1:
            raise PrenError("one-process", f"{self.name} runs in one process: leave out --devices and --nodes.")

    def scores(self, inputs: Inputs | Array) -> NDArray[np.float64]:
        """Score every class for N inputs: (N, L), larger is better, columns in the order of the class table.

        Raises:
            PrenError: If a score is not a number, or too large for one: inputs or a model of impossible size.
        """
        self._check_fitted()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is refused
            scores = self._run(self._whole(), self._ready(inputs))
        wrong = ~(scores < np.inf).all(axis=1)  # -inf rules a class out
        if wrong.any():
            raise PrenError(
                "scores-not-finite",
                f"{self.name} has no finite scores for input {int(wrong.argmax())}: its numbers are far too large, or "
                "the model is damaged. Fit again, with other inputs or parameters.",
            )
        return scores

    def predict(self, inputs: Inputs | Array, among: str | None = None) -> NDArray[np.str_]:
        """Name the best class of every input.

        Args:
            inputs: N inputs.
            among: "unseen", "seen" or "all"; by default "unseen" in ZSL and "all" in GZSL.

        Returns:
            (N,) names.
        """
        rows = best_candidate(self.scores(inputs), self.classes_.among(among or candidates_of(self.setting_)))
        return self.classes_.named(rows)

    def predict_proba(self, inputs: Inputs | Array, among: str | None = None) -> NDArray[np.float64]:
        """The share of each class in each input, by the method's own model; `pren.assess` says how far to trust labels.

        The arguments are those of `predict`.

        Returns:
            (N, L), rows of sum 1, 0 for classes that are no candidates.

        Raises:
            PrenError: If its scores are no logarithms of shares (`log_shares`).
        """
        from pren.methods.shares import predict_proba  # names other methods

        return predict_proba(self, inputs, among)

    def embed(self, inputs: Inputs | Array) -> NDArray[np.float64]:
        """Features (N, d) of N inputs as the method sees them: prepared, or made by its backbone."""
        return self._features(self._ready(inputs))

    def name_shares(self) -> Matrix | None:
        """How many heads give the group of a class (row) the name of each class: (L, L), rows of sum 1 or 0.

        None if the method does not choose names for groups.
        """
        return None

    def attribute_weights(self, inputs: Inputs | Array) -> NDArray[np.float64] | None:
        """How much every attribute counts for each of N inputs.

        w (N, m) so that scores without γ are w · a_c for the signature a_c; None if they are no such sum.
        """
        return None

    def module(self) -> nn.Module:
        """A copy of the fitted model as one module: inputs (N, *sample_shape) -> (N, L) scores.

        Raises:
            PrenError: If torch cannot compute the scores.
        """
        self._check_fitted()
        module = deepcopy(self._whole()).cpu().requires_grad_(False)
        for part in module.modules():
            if isinstance(part, Computed):
                why = f"{self.name} cannot be exported: {part.why}. Use 'pren predict', or take another method."
                raise PrenError("export-unsupported", why)
        return module

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder, which need not exist."""
        from pren.methods.storage import save_model  # imports this file

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
        from pren.methods.classes import with_class

        return with_class(self, name, signature)

    def without_class(self: Self, name: str) -> Self:
        """A copy without one unseen class."""
        from pren.methods.classes import without_class

        return without_class(self, name)

    def training_state(self) -> dict[str, Tensor]:
        """What resuming needs beyond the model."""
        return {}

    @abstractmethod
    def _scorer(self) -> nn.Module:
        """Scores prepared features: (n, d) in double precision -> (n, L), without refinement and γ.

        Columns have the order of the class table. `pren.methods.module.Computed` wraps a function in NumPy.
        """

    def _parts(self) -> tuple[nn.Module, nn.Module]:
        """Two modules: inputs to features (N, d), and these to scores (N, L), without refinement and γ."""
        return self._feature_module(), self._scorer()

    def _feature_module(self) -> nn.Module:
        """Inputs to features (N, d), as a refinement takes them."""
        assert self.preparation_ is not None
        return nn.Sequential(Flat(), self.preparation_)

    def _whole(self, *, with_gamma: bool = True) -> ScoringModule:
        """Inputs to final scores, as one module that shares its memory with the model."""
        gamma = self.gamma if self.chosen_gamma_ is None else self.chosen_gamma_
        shift = -calibrated(np.zeros((1, len(self.classes_))), self.classes_, self.setting_, gamma * with_gamma)[0]
        return ScoringModule(*self._parts(), self._refiner(), shift).eval()

    def _refiner(self) -> nn.Module | None:
        """Takes scores and what the scorer takes; None if scores are not refined."""
        return self.refinement_ if self.refinement_.changes_scores else None

    def _run(self, module: nn.Module, inputs: Inputs, fabric: Fabric | None = None) -> Matrix:
        """The output (N, ...) of a module for all inputs, in chunks; with a fabric, all processes share the work."""
        return run(module.cpu(), inputs)

    def _fit(self, problem: Problem) -> None:
        raise NotImplementedError

    def _take_in(self) -> None:
        """Make room for the last class of `classes_`, which is new.

        Where no array is learned for single classes, scores are a function of the signatures: there is nothing to do.

        Raises:
            PrenError: If the method learns each class for itself.
        """
        if any("L" in known.shape for known in declared(type(self), Learned).values()):
            raise self._no_room()

    def _leave_out(self, place: int) -> None:
        """Forget a class that was removed from `classes_`, by its place among all names, but for declared arrays."""

    def _no_room(self) -> PrenError:
        new = self.classes_.names[-1]
        return PrenError("class-fixed", f"{self.name} cannot add a class to a fitted model: fit again with {new!r}.")

    def _begin(self, problem: Problem, *, fresh: bool) -> None:
        """Check the parameters, forget an older model if `fresh`, and note what kind of problem it is."""
        self.set_params(**validate(type(self), self.get_params(deep=False)))
        self.check_classes(problem.classes)
        if fresh:
            for attribute in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, attribute)
        self.classes_ = problem.classes
        self.setting_ = problem.setting
        self.sample_shape_ = problem.train.sample_shape
        self.extractor_, self.tail_ = problem.extractor, problem.tail
        given, _ = problem.decided()
        if len(given) and not (self.learns_given or REFINEMENTS[self.refinement].changes_scores):
            advice = "add --set refinement=soft-kmeans, or take --method pren-vote"
            log.warning("%s ignores the %d labels given in the pool: %s.", self.name, len(given), advice)
        if "preparation_" not in vars(self):
            self.preparation_ = self._fit_preparation(problem)

    def _fit_preparation(self, problem: Problem) -> Preparation | None:
        d = int(np.prod(self.sample_shape_))
        if d > MOST_FEATURES:
            raise PrenError("features-needed", f"{self.name} takes features, not images of {d} numbers: add --frozen.")
        return problem.once(f"features={self.features}", partial(PREPARATIONS[self.features].fit, problem))

    def _fit_refinement(self, problem: Problem, fabric: Fabric | None = None) -> None:
        """Learn the refinement from the pool and its present scores."""
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
            raise PrenError("not-fitted", f"This {type(self).__name__} is not fitted: call fit(problem) first.")

    def _ready(self, inputs: Inputs | Array) -> Inputs:
        """Inputs of the kind that the method was fitted with."""
        self._check_fitted()
        ready = self._preprocessed(as_inputs(inputs))
        if ready.sample_shape != self.sample_shape_:
            message = f"The model takes inputs of shape {self.sample_shape_}, not {ready.sample_shape}."
            raise PrenError("inputs-shape", message)
        return ready

    def _preprocessed(self, inputs: Inputs) -> Inputs:
        """Inputs, with image files brought to the size that the method was fitted with."""
        return inputs if self.preprocessing_ is None else inputs.prepared(self.preprocessing_)

    def _features(self, inputs: Inputs, fabric: Fabric | None = None) -> Matrix:
        """(N, d) features of all inputs: prepared, or made by a backbone."""
        return self._run(self._feature_module(), inputs, fabric).astype(np.float64, copy=False)

    def _chunks(self, inputs: Inputs) -> Iterator[Matrix]:
        """`_features`, a few inputs at a time."""
        for piece in pieces(inputs, CHUNK):
            yield self._features(piece)

    def _in_table_order(self, scorer: nn.Module) -> nn.Module:
        """Bring the columns of a scorer from the order of the names to that of the class table."""
        return nn.Sequential(scorer, Columns(np.argsort(self._order())))

    def _order(self) -> NDArray[np.int64]:
        """(L,) rows of the class table in the order of the names: random numbers and networks use this order."""
        return np.argsort(np.array(self.classes_.names), kind="stable")


take_declarations(Method)
