"""PrEN (Ye & Guo): the Progressive Ensemble Network as an estimator."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BeforeValidator
from torch import Tensor

from pren.core.ensemble import Ensemble
from pren.core.progressive import Plan, Round, progressive_training
from pren.core.projection import (
    Completion,
    LabelEmbeddings,
    all_subsets,
    half_subsets,
    original,
    project,
    resolve_dim,
)
from pren.core.pseudo import PseudoLabels, per_class
from pren.core.voting import GzslRule, Network
from pren.foundation.errors import PrenError
from pren.foundation.seeds import stream
from pren.images.augmentation import Augmentation, augment
from pren.images.precision import Precision
from pren.methods.end_to_end import EndToEnd
from pren.methods.params import Positive, param
from pren.methods.preparation import Matrix
from pren.methods.refinement import REFINEMENTS
from pren.methods.selection import SELECTIONS
from pren.methods.space import Choice, Real, Whole
from pren.problem import Problem
from pren.training.chunks import images_for_heads
from pren.training.division import AdamState
from pren.training.kept_memory import KeptLinear
from pren.training.learner import ProgressiveLearner
from pren.training.processes import Fabric

log = logging.getLogger(__name__)


def _null_is_a_name(value: Any) -> Any:
    """YAML reads `completion: null` as None."""
    return "null" if value is None else value


class PrEN(EndToEnd):
    """K heads with different projections of the signatures vote; the inputs that they agree on get pseudo-labels.

    The defaults are the paper's, except `gzsl_rule`: with the printed rule no unseen class wins. The paper does not say
    how P_k is completed (`completion`), which sign an eigenvector has, how ties are broken, whether signatures have
    unit length, and how long the first training and the first rounds of GZSL are. Its variants are parameters: *PrEN
    w/o Proj* is ``projection=False``, *Progressive Training* is ``heads=1, projection=False, subsets="all"``.

    Attributes:
        network_: Backbone and heads; classes in the order of their names.
        backbone_: The backbone.
        projections_: (K, h, m) P_k, needed to add a class; None without projection.
        informative_: (K, h) which rows of P_k belong to a nonzero eigenvalue; None without projection.
    """

    name: ClassVar[str] = "pren"
    rehearsals: ClassVar[int] = 0  # a fit takes minutes

    heads: int = param(50, "K.", ge=1)
    dim: int | None = param(None, "h, the rows of a projection; None means min(70, m - 1).", ge=1)
    rounds: int = param(20, "MaxIter.", ge=0)
    initial_batches: int = param(100, "Batches on the seen classes before the first round.", ge=0)
    batches: int = param(100, "Batches in every round.", ge=0)
    batch_size: int = param(64, "Inputs in a batch.", ge=1, le=10**5)
    lr: float = param(1e-3, "Adam's learning rate.", gt=0, search=Real(1e-4, 1e-2, log=True))
    hidden: tuple[Positive, ...] = param((512, 512), "Widths of a head's hidden layers.")
    rho: float = param(
        0.25, "ρ, the share of the inputs per class that get pseudo-labels.", ge=0, le=1, search=Real(0.05, 0.5)
    )
    n_max: int = param(20, "The most pseudo-labels per class.", ge=1, search=Whole(5, 50, log=True))
    selection: str = param(
        "top-per-class",
        "Which inputs get pseudo-labels, by name; see `pren.methods.selection`.",
        among=SELECTIONS,
        search=Choice(("top-per-class", "growing")),
    )
    output_relu: bool = param(True, "Whether the heads end in a ReLU.", search=Choice((True, False)))
    completion: Annotated[Completion, BeforeValidator(_null_is_a_name)] = param(
        "null", "How a projection gets h rows; see `pren.core.projection.top_eigenvectors`."
    )
    projection: bool = param(True, "Whether the heads see projected signatures or the original ones.")
    subsets: Literal["half", "all"] = param("half", "Whether a head votes on half of the unseen classes or on all.")
    gzsl_rule: GzslRule = param(
        "probability", "How seen and unseen classes are compared; see `pren.core.voting.gzsl_scores`."
    )
    first_rounds: int = param(
        5, "GZSL: rounds in which only unseen classes get pseudo-labels.", ge=0, search=Whole(0, 20, only="gzsl")
    )
    augmentation: Augmentation = param(
        "none", "How images are varied in training: 'none' as in the paper, 'flip', or 'flip-crop'."
    )
    precision: Precision = param(
        "float32", "The precision of the backbone: 'float32', or 'bfloat16' where the device has it."
    )
    train_statistics: bool = param(True, "Whether the backbone's BatchNorm uses each batch and learns from it.")
    pieces: int = param(1, "Cut a batch into so many pieces, to save memory; gradients are added up.", ge=1)

    network_: Network
    projections_: Matrix | None
    informative_: NDArray[np.bool_] | None

    def check_processes(self, processes: int) -> None:
        """Every process takes part in every batch."""
        if processes > self.batch_size:
            message = f"{processes} processes cannot share a batch of {self.batch_size}: take fewer."
            raise PrenError("processes-too-many", message)

    def _train(self, fabric: Fabric, problem: Problem, last: Round | None, adam: AdamState) -> Iterator[Round]:
        learner = ProgressiveLearner(
            fabric,
            self.network_,
            self._adam,
            problem.train,
            problem.labels,
            problem.pool,
            initial_batches=self.initial_batches,
            batches=self.batches,
            batch_size=self.batch_size,
            pieces=self.pieces,
            rule=self.gzsl_rule,
            # Probabilities need no γ in the rounds: it would teach that seen inputs are unseen
            # (docs/results/comparison.md). The literal rule compares inner products with votes: without γ no unseen
            # class would get a pseudo-label.
            gamma=self.gamma if self.gzsl_rule == "literal" else 0.0,
            refined=partial(self._refined_pool, fabric) if REFINEMENTS[self.refinement].changes_scores else None,
            augment=self._augment(),
            seed=self.seed,
        )
        learner.load_adam(adam)
        images_per_class = len(problem.train) / int(problem.classes.seen.sum())
        plan = Plan(
            rounds=self.rounds,
            per_class=per_class(images_per_class, self.rho, self.n_max),
            unseen=problem.classes.unseen[self._order()],
            first_rounds=None if problem.setting == "zsl" else self.first_rounds,
        )
        for done in progressive_training(learner, SELECTIONS[self.selection], plan, last):
            self._adam_state = learner.adam_state()
            if done.number == done.of > 0 and fabric.is_global_zero:
                self._name_classes_without_images(done, plan)
            yield replace(done, figures={**done.figures, "agreement": learner.agreement}, labels=learner.labels)

    def _name_classes_without_images(self, done: Round, plan: Plan) -> None:
        labels = (done.pseudo or PseudoLabels.none()).labels
        without = np.setdiff1d(np.flatnonzero(plan.candidates(done.number)), labels)
        if len(without):
            names = [self.classes_.names[row] for row in self._order()[without]]
            log.warning("In the last round no input of the pool has the label %s.", ", ".join(map(repr, names)))

    def _refined_pool(self, fabric: Fabric) -> Matrix:
        """(N, L) scores of the pool by the last finished round, without γ; classes in the network's order."""
        return self._run(self._whole(with_gamma=False), self._pool, fabric)[:, self._order()]

    def _augment(self) -> Any:
        if self.augmentation == "none":
            return None
        if len(self.sample_shape_) != 3:
            message = f"augmentation={self.augmentation} needs images, but the inputs are features: leave it out."
            raise PrenError("augmentation-features", message)
        return partial(augment, kind=self.augmentation)

    def _last_round(self) -> int:
        return self.rounds

    def _at_once(self) -> int:
        return images_for_heads(self.network_.ensemble)

    def _build(self, tensors: dict[str, Tensor] | None) -> Network:
        backbone, features = self._make_backbone(
            tensors, precision=self.precision, train_statistics=self.train_statistics
        )
        if tensors is None:
            labels = self._label_embeddings()
            self.projections_, self.informative_ = labels.projections, labels.informative
        else:
            labels = self._saved_embeddings(tensors)
        rng = stream(self.seed, "weights") if tensors is None else None
        ensemble = Ensemble(features, self.hidden, labels, self.output_relu, rng, KeptLinear)
        return Network(backbone, ensemble, "votes" if self.setting_ == "zsl" else self.gzsl_rule)

    def _label_embeddings(self) -> LabelEmbeddings:
        """E_k and Z_k, with the classes in the order of their names."""
        order = self._order()
        signatures, seen = self.classes_.signatures[order], self.classes_.seen[order]
        half = self.subsets == "half"
        subsets = half_subsets(seen, self.heads, self.seed) if half else all_subsets(seen, self.heads)
        if not self.projection:
            return original(signatures, subsets)
        h = resolve_dim(self.dim, signatures.shape[1])
        return project(signatures, seen, subsets, h, self.completion, self.seed)

    def _saved_embeddings(self, tensors: dict[str, Tensor]) -> LabelEmbeddings:
        """E_k and Z_k from a file: on another machine, they could come out different."""
        vectors, subsets = tensors["ensemble.embeddings"], tensors["ensemble.subsets"]
        unseen = torch.from_numpy(self.classes_.unseen[self._order()])
        if vectors.dtype != torch.float32 or subsets.dtype != torch.bool or subsets.shape != (self.heads, len(unseen)):
            raise ValueError("label embeddings or subsets are of the wrong kind")
        if vectors.ndim != 3 or vectors.shape[::2] != subsets.shape:
            raise ValueError(f"label embeddings cannot be of shape {tuple(vectors.shape)}")
        if not torch.equal(subsets.any(dim=0), unseen):
            raise ValueError("the heads do not vote on the unseen classes")
        return LabelEmbeddings(vectors.double().numpy(), subsets.numpy())

    def _take_in(self) -> None:
        """Half of the heads, drawn by the name of the new class, add it to their Z_k.

        Its embedding is P_k a. In those heads only the rows that Eq. 1 determines count: other rows are orthogonal to
        all old signatures of Z_k, so the head has not learned to use them.
        """
        new, signature = self.classes_.names[-1], self.classes_.signatures[-1]
        place = int(np.argsort(self._order())[-1])
        voting = np.ones(self.heads, dtype=bool)
        if self.subsets == "half":
            chosen = stream(self.seed, f"added {new}").permutation(self.heads)
            voting = chosen < math.ceil(self.heads / 2)
        vectors = np.tile(signature, (self.heads, 1))
        if self.projections_ is not None and self.informative_ is not None:
            vectors = self.projections_ @ signature
            vectors[voting] = np.where(self.informative_[voting], vectors[voting], 0.0)
        ensemble = self._own_ensemble()
        embeddings, subsets = ensemble.embeddings.cpu().numpy(), ensemble.subsets.cpu().numpy()
        self._give(ensemble, np.insert(embeddings, place, vectors, axis=2), np.insert(subsets, place, voting, axis=1))

    def _leave_out(self, place: int) -> None:
        ensemble = self._own_ensemble()
        left = np.delete(ensemble.subsets.cpu().numpy(), place, axis=1)
        if not left.any(axis=1).all():
            raise PrenError("class-last", "A head would have no class left to vote for: fit again without the class.")
        self._give(ensemble, np.delete(ensemble.embeddings.cpu().numpy(), place, axis=2), left)

    def _own_ensemble(self) -> Ensemble:
        """The heads, after the network is copied: until now it is shared with the original model."""
        self.network_ = deepcopy(self.network_)
        return self.network_.ensemble

    def _give(self, ensemble: Ensemble, embeddings: NDArray[np.float32], subsets: NDArray[np.bool_]) -> None:
        ensemble.embeddings = torch.from_numpy(np.ascontiguousarray(embeddings)).to(ensemble.embeddings.device)
        ensemble.subsets = torch.from_numpy(np.ascontiguousarray(subsets)).to(ensemble.subsets.device)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        if self.projections_ is not None and self.informative_ is not None:
            tensors["projections"] = torch.from_numpy(self.projections_)
            tensors["informative"] = torch.from_numpy(self.informative_)
        return tensors, facts

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.projections_ = self.informative_ = None
        if not self.projection:
            return
        projections, informative = tensors["projections"], tensors["informative"]
        shape = (self.heads, self.network_.ensemble.embeddings.shape[1], self._sizes()["m"])
        if projections.dtype != torch.float64 or informative.dtype != torch.bool:
            raise ValueError("projections are of the wrong kind")
        if tuple(projections.shape) != shape or tuple(informative.shape) != shape[:2]:
            raise ValueError(f"projections are of shape {tuple(projections.shape)}, not {shape}")
        self.projections_, self.informative_ = projections.numpy(), informative.numpy()

    def _adam(self, network: Network) -> torch.optim.Adam:
        groups = self._groups(network.backbone, network.ensemble)
        return torch.optim.Adam(groups, betas=(0.9, 0.999), fused=True)
