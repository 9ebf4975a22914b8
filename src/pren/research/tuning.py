"""Choose a method's parameters on validation classes, in a study on disk that can be interrupted at any moment.

The study is one JSON file, rewritten after every trial. Optuna proposes parameters from the trials so far, with their
number as seed, so an interrupted study continues as if it had not been interrupted.

In generalised zero-shot learning the value of a trial is the best mean H over all γ. At the end the folds are fitted
again with the γ of the best trial, because some methods use γ while they learn. That γ is kept if it is no worse than
none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.linalg import LinAlgError

from pren.evaluation import MAIN_FIGURE, Curve, best_gamma, evaluate_scores, trade_off
from pren.foundation.errors import PrenError
from pren.foundation.files import read_bytes, write_bytes, write_json
from pren.foundation.version import __version__
from pren.images.extraction import OnProgress
from pren.methods.registry import METHODS, create
from pren.methods.space import Space
from pren.problem import Answers, Problem
from pren.research.cells import data_hashes
from pren.research.folder import STUDY_FILE, held_folder
from pren.research.folds import open_folds
from pren.research.sampling import Sampler
from pren.research.weights import OPTION, weight_space, weighted, weights_of, without_weights
from pren.store.config import RunConfig

CONFIG_FILE = "config.yaml"
MOST_BYTES = 1 << 26


class Trial(BaseModel):
    """One proposal and its result.

    Attributes:
        params: What was tried; other parameters are fixed.
        value: The mean over the folds of Top-1, in GZSL of H with the best γ; None if the method failed.
        folds: The value on each fold.
        gamma: GZSL: the best γ.
        plain: GZSL: H on each fold with the configured γ.
        seconds: How long it took.
        error: Why the method failed.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    params: dict[str, Any]
    value: float | None = None
    folds: list[float] = []
    gamma: float | None = None
    plain: list[float] = []
    seconds: float = 0.0
    error: str | None = None


class Study(BaseModel):
    """All trials, and `what` they are of."""

    model_config = ConfigDict(extra="forbid")

    what: dict[str, Any]
    trials: list[Trial] = []

    def best(self) -> Trial:
        """The best trial; the first if there are several."""
        done = [trial for trial in self.trials if trial.value is not None]
        if not done:
            raise PrenError("trials-failed", f"Every trial failed. The last error: {self.trials[-1].error}")
        return max(done, key=lambda trial: trial.value or 0.0)


@dataclass(frozen=True)
class Tuned:
    """What was chosen: its figure ("top1" or "h"), the mean of it over the folds and its value on each."""

    config: RunConfig
    figure: str
    value: float
    folds: list[float]
    trials: int
    failed: int


OnTrial = Callable[[int, Trial, Trial | None], None]  # the number of trials, the last one, the best one


def tune(
    config: RunConfig,
    out: str | Path,
    *,
    trials: int = 50,
    seed: int = 0,
    start: Mapping[str, Any] | None = None,
    command: str = "",
    on_trial: OnTrial | None = None,
    on_extract: OnProgress | None = None,
) -> Tuned:
    """Choose parameters, or continue an interrupted study.

    Args:
        config: Data and method. Its parameters are fixed; others are drawn from the method's space.
        out: The folder for the study (`study.json`) and the result (`config.yaml`).
        trials: How many in all. A method with nothing but γ to choose gets one.
        seed: Of the proposals, not of the method.
        start: Parameters to try first, such as those of another setting; defaults for the others.
        command: The command line, for the message that other writers get.
        on_trial: Called after every trial of this session.
        on_extract: Called while features are extracted.

    Raises:
        PrenError: If there is nothing to tune, `out` holds another study, or all trials fail.
    """
    folder, base = Path(out), config.resolved()
    space = search_space(config)
    stacking = config.setting == "gzsl" and "gamma" not in config.params
    if not space and not stacking:
        raise PrenError("nothing-to-tune", f"All parameters of {config.method} are set: leave some out to tune them.")
    trials = trials if space else 1
    first = {name: value for name, value in (start or {}).items() if name in space}
    sampler = Sampler(space, seed, {**base.params, **dict.fromkeys(weight_space(config), 1.0), **first})
    folds = open_folds(base, on_extract=on_extract)
    what = _identity(base, space, folds, seed, first)
    with held_folder(folder, command):
        study = _continued(folder / STUDY_FILE, what)
        for trial in study.trials:
            sampler.learn(trial.params, trial.value)
        while len(study.trials) < trials:
            params = sampler.propose()
            trial = attempt(base, params, folds, stacking)
            if len(study.trials) == 1 and trial.error is not None and trial.error == study.trials[0].error:
                raise PrenError("trials-failed", f"The first two trials failed with the same error: {trial.error}")
            sampler.learn(params, trial.value)
            study.trials.append(trial)
            write_json(folder / STUDY_FILE, study.model_dump(mode="json"))
            if on_trial is not None:
                done = [t for t in study.trials if t.value is not None]
                on_trial(len(study.trials), trial, study.best() if done else None)
        tuned = _choose(base, study, folds, stacking)
        write_bytes(folder / CONFIG_FILE, tuned.config.to_yaml().encode())
    return tuned


def search_space(config: RunConfig) -> Space:
    """What to choose: the method's space in this setting without fixed parameters, and weights of signatures."""
    entry = METHODS[config.method]
    free = {name: known for name, known in entry.method.space.items() if known.only in (None, config.setting)}
    own = {name: known for name, known in free.items() if name not in {*entry.preset, *config.params}}
    return {**own, **weight_space(config)}


def attempt(
    config: RunConfig, params: dict[str, Any], folds: Sequence[tuple[Problem, Answers]], stacking: bool
) -> Trial:
    """Fit all folds with `params` in place of the configuration's; with `stacking` (GZSL) the best γ counts."""
    since = time.perf_counter()
    figures: list[float] = []
    curves: list[Curve] = []
    weights, own = weights_of(config, params), without_weights(config, params)
    try:
        for fold, answers in folds:
            problem = weighted(fold, weights)
            method = create(config.method, **{**config.params, **own}).fit(problem)
            scores = method.scores(problem.pool)
            figure = getattr(
                evaluate_scores(scores, answers, problem.classes, problem.setting), MAIN_FIGURE[config.setting]
            )
            curve = trade_off(scores, answers, problem.classes) if stacking else None
            if figure is None or (stacking and curve is None):
                message = "Scores are infinite, or a fold lacks inputs of seen or of unseen classes."
                raise PrenError("scores-unusable", message)
            figures.append(figure)
            curves += [curve] if curve is not None else []
        result: dict[str, Any] = {"value": fmean(figures), "folds": figures}
        if stacking:
            more, value = best_gamma(curves)  # scores already contain the configured γ
            stacked = [float(curve.h_at(np.array([more]))[0]) for curve in curves]
            result = {"value": value, "folds": stacked, "plain": figures, "gamma": config.params["gamma"] + more}
    except (PrenError, ArithmeticError, LinAlgError) as error:  # parameters that do not suit these data
        result = {"error": str(error)}
    return Trial(params=params, seconds=round(time.perf_counter() - since, 3), **result)


def _choose(base: RunConfig, study: Study, folds: Sequence[tuple[Problem, Answers]], stacking: bool) -> Tuned:
    best = study.best()
    params, figures = dict(best.params), best.folds
    if stacking:
        tried = attempt(base, {**params, "gamma": best.gamma}, folds, stacking=False)
        if tried.value is not None and tried.value >= fmean(best.plain):
            params["gamma"], figures = best.gamma, tried.folds
        else:
            figures = best.plain
    value = fmean(figures)
    figure, number = MAIN_FIGURE[base.setting], len(study.trials)
    record = {"figure": figure, "mean_over_folds": value, "folds": figures, "trials": number}
    record |= {"hashes": study.what["folds"], "version": __version__}
    update = {"params": {**base.params, **without_weights(base, params)}, "choose_gamma": False}
    update |= {"record": {"tuned": record}}
    if (weights := weights_of(base, params)) is not None:
        update["options"] = {**base.options, OPTION: weights}
    chosen = base.with_absolute_paths().model_copy(update=update)
    failed = sum(trial.value is None for trial in study.trials)
    return Tuned(chosen.resolved(), figure, value, figures, number, failed)


def _identity(
    config: RunConfig, space: Space, folds: Sequence[tuple[Problem, Answers]], seed: int, start: Mapping[str, Any]
) -> dict[str, Any]:
    """What must be equal to continue a study; without paths and without the test."""
    params = config.model_dump(mode="json")["params"]
    what = {
        "version": __version__,
        "method": config.method,
        "setting": config.setting,
        "fixed": {key: value for key, value in params.items() if key not in space},
        "space": {name: asdict(dimension) for name, dimension in space.items()},
        "folds": [data_hashes(problem, answers) for problem, answers in folds],
        "seed": seed,
        **({"start": start} if start else {}),
    }
    plain: dict[str, Any] = json.loads(json.dumps(what))  # as it is read back
    return plain


def read_study(path: Path) -> Study:
    """Read a study; a `PrenError` if it is damaged."""
    try:
        return Study.model_validate_json(read_bytes(path, MOST_BYTES))
    except ValueError as error:
        raise PrenError("damaged", f"{path} is damaged: restore it, or choose another folder with --out.") from error


def _continued(path: Path, what: dict[str, Any]) -> Study:
    """The study to continue, new or from its file."""
    if not path.exists():
        return Study(what=what)
    study = read_study(path)
    different = [key for key in {**study.what, **what} if study.what.get(key) != what.get(key)]
    if different:
        raise PrenError("study-other", f"{path} is another study (other {', '.join(different)}): change --out.")
    return study
