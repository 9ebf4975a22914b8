"""PrEN (Ye & Guo): the Progressive Ensemble Network as an estimator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field
from torch import Tensor, nn

from pren.core.division import own_heads, own_state, trains_heads_apart, whole_state
from pren.core.ensemble import Ensemble, Network
from pren.core.progressive import Round, Schedule, images_at_once, predict, progressive_training
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
from pren.core.voting import GzslRule
from pren.errors import PrenError
from pren.inputs import ArrayInputs, Inputs
from pren.methods.end_to_end import EndToEnd
from pren.methods.params import NotNegative, Positive, Rate, Seed
from pren.methods.pren_state import check_ensemble, read_training_state, training_state
from pren.methods.saved import load_weights
from pren.methods.space import Choice, Real, Space, Whole
from pren.problem import Problem
from pren.processes import over_chunks, share_weights, single_process
from pren.seeds import stream
from pren.vision.augmentation import Augmentation, augment
from pren.vision.backbones import check_takes, create_backbone, give_weights
from pren.vision.preprocessing import Geometry
from pren.vision.timm_backbone import Precision


def _null_is_a_name(value: Any) -> Any:
    """YAML reads `completion: null` as nothing at all."""
    return "null" if value is None else value


class PrEN(EndToEnd):
    """K heads with different projections of the signatures vote; the best-agreed images become pseudo-labels.

    The defaults are the paper's, but for `gzsl_rule`: the printed rule leaves the unseen classes nothing. Its two
    variants are parameters: *PrEN w/o Proj* is ``projection=False``, *Progressive Training* is ``heads=1,
    projection=False, subsets="all"``.

    Args:
        heads: K.
        dim: h, the rows of a projection; None means min(70, m - 1).
        rounds: MaxIter.
        initial_batches: Batches on the seen classes before the first round.
        batches: Batches in every round.
        batch_size: Images in a batch.
        lr: Adam's learning rate.
        backbone_lr: The backbone's own, None for `lr`.
        hidden: Widths of a head's hidden layers.
        rho: Share of the images per class that become pseudo-labels in a round.
        n_max: At most so many per class.
        output_relu: Whether the heads end in a ReLU.
        completion: How a projection gets h rows; see `pren.core.projection.top_eigenvectors`.
        projection: Whether the heads see projected signatures or the original ones.
        subsets: Whether a head votes on "half" of the unseen classes or on "all".
        gzsl_rule: How seen and unseen classes are compared; see `pren.core.voting.gzsl_scores`.
        gamma: GZSL: taken off the scores of seen classes; with the literal rule in the rounds, too.
        first_rounds: GZSL: rounds in which only unseen classes get pseudo-labels.
        backbone: Which network the images go through; None takes the problem's own, or ResNet-34 for image files.
        weights: What it starts from: None for trained weights, the path of a file, or "random".
        geometry: How image files are brought to its size: the "whole" image as in the paper, or as "timm" does.
        frozen: Whether the backbone stays as it is.
        augmentation: What is done to images while training: "none" as in the paper, "flip", or "flip-crop".
        precision: What the backbone computes in: "float32", or "bfloat16" where the device has it (weights stay
            float32).
        train_statistics: Whether the backbone's BatchNorm goes by each batch and learns from it.
        pieces: How many pieces a batch goes through the network in, to need less memory; gradients are added up.
        seed: For subsets, projections, initial weights and batches.

    Attributes:
        network_: Backbone and heads; classes in the order of their names.
        backbone_: The backbone that was used.
    """

    name: ClassVar[str] = "pren"
    learned: ClassVar[str] = "network_"
    added: ClassVar[Mapping[str, Any]] = {
        "weights": None,
        "geometry": "whole",
        "augmentation": "none",
        "precision": "float32",
        "train_statistics": True,
        "pieces": 1,
    }
    space: ClassVar[Space] = {
        "lr": Real(1e-4, 1e-2, log=True),
        "rho": Real(0.05, 0.5),
        "n_max": Whole(5, 50, log=True),
        "output_relu": Choice((True, False)),
        "first_rounds": Whole(0, 20, only="gzsl"),
    }

    def __init__(
        self,
        heads: Positive = 50,
        dim: Positive | None = None,
        rounds: NotNegative = 20,
        initial_batches: NotNegative = 100,
        batches: NotNegative = 100,
        batch_size: Positive = 64,
        lr: Rate = 1e-3,
        backbone_lr: Rate | None = None,
        hidden: tuple[Positive, ...] = (512, 512),
        rho: Annotated[float, Field(ge=0, le=1)] = 0.25,
        n_max: Positive = 20,
        output_relu: bool = True,
        completion: Annotated[Completion, BeforeValidator(_null_is_a_name)] = "null",
        projection: bool = True,
        subsets: Literal["half", "all"] = "half",
        gzsl_rule: GzslRule = "probability",
        gamma: float = 0.0,
        first_rounds: NotNegative = 5,
        backbone: str | None = None,
        weights: str | None = None,
        geometry: Geometry = "whole",
        frozen: bool = False,
        augmentation: Augmentation = "none",
        precision: Precision = "float32",
        train_statistics: bool = True,
        pieces: Positive = 1,
        seed: Seed = 0,
    ) -> None:
        self.heads = heads
        self.dim = dim
        self.rounds = rounds
        self.initial_batches = initial_batches
        self.batches = batches
        self.batch_size = batch_size
        self.lr = lr
        self.backbone_lr = backbone_lr
        self.hidden = hidden
        self.rho = rho
        self.n_max = n_max
        self.output_relu = output_relu
        self.completion = completion
        self.projection = projection
        self.subsets = subsets
        self.gzsl_rule = gzsl_rule
        self.gamma = gamma
        self.first_rounds = first_rounds
        self.backbone = backbone
        self.weights = weights
        self.geometry = geometry
        self.frozen = frozen
        self.augmentation = augmentation
        self.precision = precision
        self.train_statistics = train_statistics
        self.pieces = pieces
        self.seed = seed

    def fit_rounds(
        self, problem: Problem, state: dict[str, Tensor] | None = None, fabric: Fabric | None = None
    ) -> Iterator[Round]:
        """Run Algorithm 1, round by round; see `Method.fit_rounds`."""
        self._begin(problem, fresh=state is None)
        problem = self._prepared(problem)
        change = None if self.augmentation == "none" else partial(augment, kind=self.augmentation)
        if change is not None and (self.frozen or len(self.sample_shape_) == 1):
            raise PrenError(f"augmentation={self.augmentation} changes images, but it is features that are trained on.")
        fabric = fabric or single_process()
        self.check_processes(fabric.world_size)
        if not hasattr(self, "network_"):  # with a state: the first of several processes alone has read the model
            self.network_ = self._build(self._label_embeddings())
            give_weights(self.network_.backbone, self.backbone_, self.weights)
        network, train, pool = self.network_.to(fabric.device), problem.train, problem.pool
        check_takes(network.backbone, self.backbone_, self.sample_shape_)
        share_weights(fabric, network)
        if self.frozen and len(self.sample_shape_) > 1:
            # Images never change, and neither do their features: take them once and train on them.
            train, pool = (_extract(fabric, network.backbone, inputs) for inputs in (train, pool))
            network = Network(nn.Identity(), network.ensemble)
        apart = trains_heads_apart(fabric, network)
        trained = own_heads(fabric, network) if apart else network
        optimizer = self._adam(trained)
        last = None
        if state is not None:
            last, adam = read_training_state(
                state, self._adam(network), self.rounds, self.initial_batches > 0, self.batches > 0
            )
            adam = own_state(fabric, network, adam) if apart else adam
            optimizer.load_state_dict({**optimizer.state_dict(), "state": adam})
        labels = np.argsort(self._order())[problem.labels]
        schedule = self._schedule(problem)
        for done in progressive_training(
            fabric, network, trained, optimizer, train, labels, pool, schedule, last, change
        ):
            self._round = done
            self._adam_state = whole_state(fabric, network, optimizer) if apart else optimizer.state_dict()["state"]
            yield Round(done.number, done.loss, self._named(done.pseudo), done.changed)

    def check_processes(self, processes: int) -> None:
        """Every process takes part in every batch."""
        if processes > self.batch_size:
            raise PrenError(f"{processes} processes cannot share batches of {self.batch_size}: take fewer.")

    def training_state(self) -> dict[str, Tensor]:
        """Adam's state and the last round; the weights are the model's."""
        return training_state(self._round, self._adam_state)

    def _schedule(self, problem: Problem) -> Schedule:
        images_per_class = len(problem.train) / int(problem.classes.seen.sum())
        return Schedule(
            rounds=self.rounds,
            initial_batches=self.initial_batches,
            batches=self.batches,
            batch_size=self.batch_size,
            pieces=self.pieces,
            per_class=per_class(images_per_class, self.rho, self.n_max),
            first_rounds=None if problem.setting == "zsl" else self.first_rounds,
            gzsl_rule=self.gzsl_rule,
            # Probabilities of seen and unseen classes are of one kind, and γ corrects what is decided in the end: in
            # the rounds it would teach that seen images are unseen (docs/results/comparison.md). The literal rule
            # compares inner products with votes: without γ no unseen class would get a pseudo-label.
            gamma=self.gamma if self.gzsl_rule == "literal" else 0.0,
            seed=self.seed,
        )

    def _scores(self, inputs: Inputs) -> NDArray[np.float64]:
        fabric = single_process()
        self.network_.to(fabric.device)
        rule = self.gzsl_rule if self.setting_ == "gzsl" else None
        by_name = predict(fabric, self.network_, inputs, rule, self.gamma)
        return by_name[:, np.argsort(self._order())]

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return self.network_.state_dict(), self._backbone_facts()

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        check_ensemble(tensors, self.hidden, self.sample_shape_, torch.from_numpy(self.classes_.unseen[self._order()]))
        self._restore_backbone(tensors, facts)
        vectors, subsets = tensors["ensemble.embeddings"], tensors["ensemble.subsets"]
        network = self._build(LabelEmbeddings(vectors.double().numpy(), subsets.numpy()))
        load_weights(network, tensors)
        self.network_ = network

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

    def _build(self, labels: LabelEmbeddings) -> Network:
        backbone, features = create_backbone(
            self.backbone_, self.sample_shape_, self.seed, self.precision, self.train_statistics
        )
        ensemble = Ensemble(features, self.hidden, labels, self.output_relu, stream(self.seed, "weights"))
        return Network(backbone, ensemble)

    def _adam(self, network: Network) -> torch.optim.Adam:
        groups = [{"params": list(network.ensemble.parameters()), "lr": self.lr}]
        backbone = list(network.backbone.parameters())
        if backbone:
            groups.append({"params": backbone, "lr": self.backbone_lr or self.lr})
        return torch.optim.Adam(groups, betas=(0.9, 0.999), fused=True)

    def _named(self, pseudo: PseudoLabels) -> PseudoLabels:
        """The same pseudo-labels as rows of the class table."""
        return PseudoLabels(pseudo.images, self._order()[pseudo.labels])


def _extract(fabric: Fabric, backbone: nn.Module, inputs: Inputs) -> Inputs:
    """Features (N, d) of all images."""
    backbone.eval()
    return ArrayInputs(over_chunks(fabric, inputs, images_at_once(inputs, fabric), backbone))
