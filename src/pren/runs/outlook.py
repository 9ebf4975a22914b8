"""Forecasts of methods on some data, and the method with the best one."""

from __future__ import annotations

from statistics import fmean
from typing import Any, NamedTuple

from pren.foundation.errors import PrenError
from pren.images.extraction import OnProgress
from pren.methods.registry import METHODS
from pren.runs.opening import open_problem
from pren.runs.settings import AUTO, Settings
from pren.store.config import RunConfig
from pren.trust import Forecast, OnRehearsal, assess, usual_draws

_ALIKE = {"features": "whitened", "refinement": "soft-kmeans"}
# Quick and different methods: which one is best depends on the data.
CANDIDATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("pren-vote", {}),
    ("pren-vote", {"balance": 0.5}),
    ("ridge-s2v", _ALIKE),
    ("sje", _ALIKE),
    ("gfzsl", {"features": "whitened"}),
)
FEWEST = 3  # rehearsals of a slow method, for which `fit` has none by default


class Outlook(NamedTuple):
    """A method with its parameters, and its forecast."""

    config: RunConfig
    forecast: Forecast

    @property
    def rehearsed(self) -> float:
        """The mean share of right labels over rehearsals, which are the same for all methods."""
        return fmean(self.forecast.rehearsed)

    @property
    def name(self) -> str:
        """The method, and the parameters that are not its defaults."""
        entry = METHODS[self.config.method]
        defaults = {name: param.default for name, param in entry.method.params.items()} | dict(entry.preset)
        own = [f"{name}={value}" for name, value in self.config.params.items() if value != defaults[name]]
        return " ".join([entry.name, *own])

    def line(self) -> str:
        """The forecast in one line."""
        low, high = self.forecast.percent()
        return f"{self.name}: {low} to {high} % expected, {100 * self.rehearsed:.1f} % in rehearsals."


def candidates(config: RunConfig) -> list[RunConfig]:
    """The configurations to try for "auto"; for any other method, the configuration itself."""
    if config.method != AUTO:
        return [config]
    if config.params:
        raise PrenError("option-conflict", f"--method {AUTO} sets parameters: omit --set {', '.join(config.params)}.")
    return [config.model_copy(update={"method": name, "params": params}) for name, params in CANDIDATES]


def outlooks(
    settings: Settings,
    config: RunConfig,
    on_extract: OnProgress | None = None,
    on_rehearsal: OnRehearsal | None = None,
) -> list[Outlook]:
    """Fit and rehearse the method of a configuration, or the candidates of "auto"; the best comes first.

    Args:
        settings: Of the backbone.
        config: Of all else.
        on_extract: Called as features are extracted.
        on_rehearsal: Called after every rehearsal.

    Raises:
        PrenError: If there are too few seen classes, or a method cannot be fitted to the data.
    """
    names = [part.method for part in candidates(config)]
    asked = [part.resolved() for part in candidates(settings.with_backbone(config, names))]
    problem, _ = open_problem(asked[0], on_extract=on_extract, methods=[part.method for part in asked])
    found = []
    for part in asked:
        method = part.create_method()
        count = max(usual_draws(method, problem), FEWEST) if part.rehearsals is None else part.rehearsals
        trust = assess(method.fit(problem), problem, count, gamma=bool(part.choose_gamma), on_rehearsal=on_rehearsal)
        found.append(Outlook(part, trust.forecast))
    return sorted(found, key=lambda outlook: -outlook.rehearsed)  # stable: of equals the first candidate wins
