"""PrEN's network as the learner of Algorithm 1."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch.optim import Optimizer

from pren.core.pseudo import PseudoLabels, best_candidate
from pren.core.voting import GzslRule, Network, ScoreRule
from pren.foundation.seeds import stream
from pren.problem.inputs import Inputs
from pren.training.batches import Augment, TrainingSet, batches
from pren.training.chunks import images_for_backbone, images_for_heads
from pren.training.division import AdamState, exchange_weights, own_heads, own_state, trains_heads_apart, whole_state
from pren.training.processes import Fabric, over_chunks, share_weights
from pren.training.trainer import Trainer


class ProgressiveLearner:
    """A `Network` with its training data.

    Args:
        fabric: The device and the processes.
        network: Backbone and heads; trained in place.
        adam: Makes the optimiser of a network.
        train: D_s.
        labels: (N,) its classes, numbered as in the network.
        pool: The unlabelled inputs.
        initial_batches: Batches on the seen classes, before the first round.
        batches: Batches in every round.
        batch_size: Inputs in a batch.
        pieces: See `Trainer`.
        rule: GZSL: how seen and unseen classes are compared where both are candidates.
        gamma: GZSL: subtracted from the scores of seen classes there.
        refined: Gives the refined scores (N, L) of the pool, the same in every process; None for the network's scores.
        augment: Changes the inputs of a batch; None for no change.
        seed: For the order of the batches and for `augment`.
    """

    def __init__(
        self,
        fabric: Fabric,
        network: Network,
        adam: Callable[[Network], Optimizer],
        train: Inputs,
        labels: NDArray[np.int64],
        pool: Inputs,
        *,
        initial_batches: int,
        batches: int,
        batch_size: int,
        pieces: int = 1,
        rule: GzslRule = "probability",
        gamma: float = 0.0,
        refined: Callable[[], NDArray[np.float64]] | None = None,
        augment: Augment | None = None,
        seed: int = 0,
    ) -> None:
        self._fabric, self._network = fabric, network
        self._train, self._labels, self._pool = train, labels, pool
        self._batches = (initial_batches, batches, batch_size)
        self._rule, self._gamma, self._refined = rule, gamma, refined
        self._augment, self._seed = augment, seed
        self.labels: NDArray[np.int64] | None = None  # (N,) predicted classes of the pool, from the last `score`
        self.agreement = math.nan  # the share of heads that voted for these labels; NaN if there was no vote
        self._apart = trains_heads_apart(fabric, network)
        trained = own_heads(fabric, network) if self._apart else network
        self._trainer = Trainer(fabric, trained, adam(trained), self._apart, pieces)

    def train(self, pseudo: PseudoLabels, number: int) -> float:
        """Train on D_s ∪ D_pseudo."""
        initial, later, size = self._batches
        chance = stream(self._seed, "augmentation", number, self._fabric.global_rank)
        images = TrainingSet(self._train, self._labels, self._pool, pseudo, self._augment, chance)
        loss = self._trainer.train(images, batches(len(images), size, later if number else initial, self._seed, number))
        if self._apart:
            exchange_weights(self._fabric, self._network)
        else:
            share_weights(self._fabric, self._network)  # the BatchNorm statistics differ between processes
        return loss

    def score(self, candidates: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Score the pool, by votes while only unseen classes are candidates.

        Refined scores always cover all classes of the setting: a refinement itself finds the inputs of seen classes.
        """
        network = self._network.eval()
        seen = ~network.ensemble.subsets.any(dim=0).cpu().numpy()
        general = bool(candidates[seen].any())
        if self._refined is not None:
            scores = self._refined()
        else:
            rule: ScoreRule = self._rule if general else "votes"
            size = min(images_for_backbone(self._pool, self._fabric), images_for_heads(network.ensemble))
            scores = over_chunks(self._fabric, self._pool, size, lambda chunk: network.scores(chunk, rule))
        scores = scores - self._gamma * seen if general else scores
        self.labels = best_candidate(scores, candidates)
        by_votes = self._refined is None and not general
        # Scores are vote shares plus a small term that breaks ties. Later digits depend on the order of the inputs and
        # on the CPU's rounding.
        self.agreement = min(round(float(scores[:, candidates].max(axis=1).mean()), 4), 1.0) if by_votes else math.nan
        return scores

    def adam_state(self) -> AdamState:
        """Adam's state of all heads, in every process."""
        optimizer = self._trainer.optimizer
        if self._apart:
            return whole_state(self._fabric, self._network, optimizer)
        state: AdamState = optimizer.state_dict()["state"]
        return state

    def load_adam(self, state: AdamState) -> None:
        """The inverse of `adam_state`."""
        optimizer = self._trainer.optimizer
        own = own_state(self._fabric, self._network, state) if self._apart else state
        optimizer.load_state_dict({**optimizer.state_dict(), "state": own})
