"""Proposals of parameters by Optuna's TPE sampler, which keeps nothing on disk."""

from __future__ import annotations

from typing import Any

from pren.foundation.extras import need
from pren.foundation.seeds import stream
from pren.methods.space import Choice, Dimension, Space, Whole, holds


class Sampler:
    """Proposes parameters and learns from their values.

    The number of trials so far seeds every proposal, so the trials are its whole state.

    Args:
        space: What to draw.
        seed: Of the proposals.
        start: What to try first, where the space has it, so that tuning never ends below it.
    """

    def __init__(self, space: Space, seed: int, start: dict[str, Any]) -> None:
        self._optuna = need("optuna", "research")
        self._seed = seed
        self._distributions = {name: self._distribution(dimension) for name, dimension in space.items()}
        self._start = {name: start[name] for name, dimension in space.items() if holds(dimension, start.get(name))}
        self._study = self._optuna.create_study(direction="maximize", sampler=self._sampler(0))
        self._asked: Any = None

    def propose(self) -> dict[str, Any]:
        """What to try next; call `learn` afterwards."""
        number = len(self._study.trials)
        if not number:
            self._study.enqueue_trial(self._start)
        self._study.sampler = self._sampler(number)
        self._asked = self._study.ask(self._distributions)
        params: dict[str, Any] = self._asked.params
        return params

    def learn(self, params: dict[str, Any], value: float | None) -> None:
        """Take in the value of the last proposal, or of one of an earlier session; None if it failed."""
        states = self._optuna.trial.TrialState
        state = states.FAIL if value is None else states.COMPLETE
        if self._asked is not None:
            self._study.tell(self._asked, value, state)
            self._asked = None
            return
        self._study.add_trial(
            self._optuna.trial.create_trial(state=state, value=value, params=params, distributions=self._distributions)
        )

    def _sampler(self, number: int) -> Any:
        return self._optuna.samplers.TPESampler(seed=int(stream(self._seed, "tuning", number).integers(2**31)))

    def _distribution(self, dimension: Dimension) -> Any:
        known = self._optuna.distributions
        if isinstance(dimension, Choice):
            return known.CategoricalDistribution(dimension.values)
        kind = known.IntDistribution if isinstance(dimension, Whole) else known.FloatDistribution
        return kind(dimension.low, dimension.high, log=dimension.log)
