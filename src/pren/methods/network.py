"""Methods that learn a network: building, training in rounds, resuming, scoring, saving."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pren.core.progressive import Round
from pren.core.pseudo import PseudoLabels
from pren.foundation.errors import PrenError, reason
from pren.methods.base import Method
from pren.methods.params import param
from pren.methods.preparation import Matrix
from pren.methods.refinement import REFINEMENTS
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs, Inputs
from pren.training.adam import adam_tensors, read_adam
from pren.training.chunks import CHUNK_IMAGES, apply
from pren.training.division import AdamState
from pren.training.processes import Fabric, share, share_weights, single_process
from pren.training.trainer import Trainer

ROUND_NUMBER = "round.number"  # in the state of training


class NetworkMethod(Method):
    """A method whose model is a network with the classes in the order of their names.

    It writes `_build` (the network) and `_train` (its rounds). The network has `forward`, which gives scores (N, L),
    and `loss`.

    Attributes:
        network_: The network.
    """

    lr: float = param(1e-3, "Adam's learning rate.", gt=0)
    seed: int = param(0, "The seed of all random numbers.", ge=0, le=2**63 - 1)

    network_: nn.Module
    _pool: Inputs  # during fit, before its preparation
    _round: Round
    _adam_state: AdamState

    @abstractmethod
    def _build(self, tensors: dict[str, Tensor] | None) -> nn.Module:
        """The network: with fresh weights, or ready for saved ones."""

    @abstractmethod
    def _train(self, fabric: Fabric, problem: Problem, last: Round | None, adam: AdamState) -> Iterator[Round]:
        """Train `network_`; after every round, store Adam's state in `_adam_state`.

        Args:
            fabric: Where to compute.
            problem: With inputs as the network takes them, and labels in the order of its classes.
            last: The last finished round; None at the start.
            adam: Adam's state after that round.
        """

    def fit_rounds(
        self,
        problem: Problem,
        state: dict[str, Tensor] | None = None,
        fabric: Fabric | None = None,
        start: Method | None = None,
    ) -> Iterator[Round]:
        """Train round by round; see `Method.fit_rounds`."""
        self._begin(problem, fresh=state is None)
        fabric = fabric or single_process()
        self.check_processes(fabric.world_size)
        if start is not None and state is None:
            self.preparation_ = start.preparation_  # its network was trained with it
        given, problem = problem, self._as_taken(problem)
        self._pool = self._preprocessed(given.pool)
        if not self._is_fitted():  # when resuming, only the first process has read the model
            self.network_ = self._build(None)
            if start is not None and state is None:
                self._inherit(start)
        network = self.network_.to(fabric.device)
        self._check_network()
        share_weights(fabric, network)
        last, adam = (None, {}) if state is None else self._read_training_state(state)
        if state is not None:
            self._share_refinement(fabric)
        by_name = np.argsort(self._order())
        for done in self._train(fabric, replace(problem, labels=by_name[problem.labels]), last, adam):
            self._round = done
            self._fit_refinement(given, fabric)
            pseudo = done.pseudo
            if pseudo is not None:  # as rows of the class table
                pseudo = PseudoLabels(pseudo.images, self._order()[pseudo.labels])
            labels = None if done.labels is None else self._order()[done.labels]
            yield replace(done, pseudo=pseudo, labels=labels)
        if "refinement_" not in vars(self):  # there was no round
            self._fit_refinement(given, fabric)
        del self._pool

    def _inherit(self, start: Method) -> None:
        """Take over the network of another model, with the classes of this problem.

        Raises:
            PrenError: If it is of another method, or its classes have changed.
        """
        from pren.methods.classes import with_classes_of  # imports `Method`

        if type(start) is not type(self) or start.sample_shape_ != self.sample_shape_:
            message = f"{self.name} cannot start from a model of {start.name} or of other inputs: start from scratch."
            raise PrenError("start-other", message)
        grown = with_classes_of(start, self.classes_)
        shapes = [{name: t.shape for name, t in model.network_.state_dict().items()} for model in (self, grown)]
        if shapes[0] != shapes[1]:
            raise PrenError("start-other", "The model to start from has another network: keep its heads and layers.")
        kept = ("classes_", "setting_", "extractor_", "tail_", "refinement_", "chosen_gamma_", "preprocessing_")
        for name in [name for name in vars(grown) if name.endswith("_") and name not in kept]:
            setattr(self, name, getattr(grown, name))

    def training_state(self) -> dict[str, Tensor]:
        """Adam's state and the last round; the model holds the weights."""
        pseudo = self._round.pseudo or PseudoLabels.none()
        return {
            **adam_tensors(self._adam_state),
            ROUND_NUMBER: torch.tensor(self._round.number),
            "round.images": torch.from_numpy(pseudo.images),
            "round.labels": torch.from_numpy(pseudo.labels),
        }

    @abstractmethod
    def _adam(self, network: Any) -> torch.optim.Adam:
        """The optimiser of a network."""

    def _read_training_state(self, state: dict[str, Tensor]) -> tuple[Round, AdamState]:
        """The inverse of `training_state`, checked."""
        try:
            images, labels = state["round.images"], state["round.labels"]
            if images.shape != labels.shape or images.ndim != 1 or {images.dtype, labels.dtype} != {torch.int64}:
                raise ValueError("not every pseudo-label has an input")
            last = Round(int(state[ROUND_NUMBER]), 0, {}, PseudoLabels(images.numpy(), labels.numpy()))
            if not 0 <= last.number <= self._last_round():
                raise ValueError(f"there is no round {last.number}")
            return last, read_adam(state, self._adam(self.network_))
        except (KeyError, ValueError, OverflowError, RuntimeError) as error:
            message = f"The training state is damaged or belongs to another model: {reason(error)}"
            raise PrenError("damaged", message) from error

    @abstractmethod
    def _last_round(self) -> int:
        """The number of the last round."""

    def _is_fitted(self) -> bool:
        return "network_" in vars(self)

    def _as_taken(self, problem: Problem) -> Problem:
        """The problem with inputs as the network takes them."""
        return replace(problem, train=self._as_input(problem.train), pool=self._as_input(problem.pool))

    def _as_input(self, inputs: Inputs) -> Inputs:
        if self.preparation_ is None or (self.features == "raw" and len(inputs.sample_shape) == 1):
            return inputs
        return ArrayInputs(self.preparation_.of(inputs).astype(np.float32))

    def _check_network(self) -> None:
        """Refuse inputs that the network cannot take, before training."""

    def _run(self, module: nn.Module, inputs: Inputs, fabric: Fabric | None = None) -> Matrix:
        fabric = fabric or single_process()
        return apply(fabric, module.to(fabric.device), inputs, self._at_once())

    def _feature_module(self) -> nn.Module:
        # The network takes raw features in single precision.
        return nn.Flatten() if self.features == "raw" else super()._feature_module()

    def _scorer(self) -> nn.Module:
        return self._in_table_order(nn.Sequential(Single(), self._scoring_network()))

    def _scoring_network(self) -> nn.Module:
        """Features to scores, classes in the order of their names."""
        return self.network_

    def _fit_refinement(self, problem: Problem, fabric: Fabric | None = None) -> None:
        super()._fit_refinement(problem, fabric)
        if fabric is not None:
            self._share_refinement(fabric)

    def _share_refinement(self, fabric: Fabric) -> None:
        """Give every process the refinement of the first process."""
        kind = REFINEMENTS[self.refinement]
        if fabric.world_size == 1 or not kind.learns:
            return
        mine = self.refinement_.arrays if "refinement_" in vars(self) else {}
        first = share(fabric, {name: torch.from_numpy(array) for name, array in mine.items()})
        self.refinement_ = kind(self._candidates(), **{name: tensor.numpy() for name, tensor in first.items()})

    def _take_in(self) -> None:
        raise self._no_room()

    def _leave_out(self, place: int) -> None:
        raise PrenError("class-fixed", f"{self.name} cannot forget a class: fit again without it.")

    def _at_once(self) -> int:
        """How many inputs the network scores at once."""
        return CHUNK_IMAGES

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        return {**tensors, **{f"network.{name}": value for name, value in self.network_.state_dict().items()}}, facts

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        saved = {name.removeprefix("network."): t for name, t in tensors.items() if name.startswith("network.")}
        try:
            with torch.device("meta"):  # without memory: a damaged file could ask for any amount
                _check_weights(self._build(saved), saved)
            network = self._build(saved)
        except (RuntimeError, PrenError) as error:
            raise ValueError(f"the network cannot be built: {error}") from error
        network.load_state_dict(saved)
        self.network_ = network


def _check_weights(network: nn.Module, saved: dict[str, Tensor]) -> None:
    """Check the names, shapes and types of saved weights."""
    wanted = network.state_dict()
    if wanted.keys() != saved.keys():
        raise ValueError(f"weights are {sorted(saved)}, not {sorted(wanted)}")
    for name, empty in wanted.items():
        if saved[name].dtype != empty.dtype or saved[name].shape != empty.shape:
            found, asked = (f"{tensor.dtype} {tuple(tensor.shape)}" for tensor in (saved[name], empty))
            raise ValueError(f"{name} is {found}, not {asked}")


class Single(nn.Module):
    """Convert to single precision."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape."""
        return x.float()


class EpochMethod(NetworkMethod):
    """A method that trains in epochs on labelled inputs and the pool; it writes `_epoch`."""

    epochs: int = param(10, "Passes over the labelled inputs.", ge=0)

    @abstractmethod
    def _epoch(self, trainer: Trainer, problem: Problem, epoch: int) -> float:
        """Train an epoch (the first is 1) and return the mean loss."""

    def _train(self, fabric: Fabric, problem: Problem, last: Round | None, adam: AdamState) -> Iterator[Round]:
        optimizer = self._adam(self.network_)
        optimizer.load_state_dict({**optimizer.state_dict(), "state": adam})
        trainer = Trainer(fabric, self.network_, optimizer)
        for epoch in range(1 if last is None else last.number + 1, self.epochs + 1):
            loss = self._epoch(trainer, problem, epoch)
            self._adam_state = optimizer.state_dict()["state"]
            yield Round(epoch, self.epochs, {"loss": loss}, kind="epoch")

    def _last_round(self) -> int:
        return self.epochs


def initial_linear(fan_in: int, fan_out: int, rng: np.random.Generator | None) -> nn.Linear:
    """A layer with torch's usual initial weights, drawn from `rng`; None leaves them uninitialised."""
    layer: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Linear, fan_in, fan_out, device=torch.get_default_device()
    )
    if rng is not None:
        bound = 1 / np.sqrt(fan_in)
        with torch.no_grad():
            for weights in (layer.weight, layer.bias):
                weights.copy_(torch.from_numpy(rng.uniform(-bound, bound, size=tuple(weights.shape))))
    return layer
