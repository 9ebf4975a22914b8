"""Fit a method in a run folder: from a configuration to a model, predictions and metrics on disk."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.core.progressive import Round
from pren.errors import PrenError
from pren.evaluation import check_answers, evaluate
from pren.methods.base import Method
from pren.problem import UNKNOWN, Answers, Problem
from pren.runs.config import RunConfig
from pren.runs.folder import HISTORY, RunFolder

OnRound = Callable[[Round, Method], None]


def train(
    config: RunConfig, out: str | Path, *, resume: bool = False, command: str = "", on_round: OnRound | None = None
) -> RunFolder:
    """Run a configuration, or go on with what an interrupted one left.

    Args:
        config: What to do.
        out: The run folder: new or empty, or with `resume` one that holds this very run.
        resume: Go on after the last finished round.
        command: How the run was started, for the record.
        on_round: Called after every round, when it is saved.

    Raises:
        PrenError: If the configuration, the data or the folder is not as it should be.
    """
    config = config.resolved()
    method = config.create_method()
    problem, answers = config.load_data()
    if answers is not None:
        check_answers(answers, problem.classes, problem.setting)  # not after hours of training
    hashes = problem.fingerprint()
    if resume:
        folder = _reopen(out, config, hashes)
    else:
        record = {"hashes": hashes, "source": problem.source, **_surroundings(command)}
        folder = RunFolder.create(out, config.model_copy(update={"record": record}))
    if not folder.finished():
        try:
            _fit(folder, method, problem, on_round)
        except PrenError:
            if not resume:
                folder.discard_if_nothing_done()
            raise
        finish(folder, problem, answers)
    return folder


def _fit(folder: RunFolder, method: Method, problem: Problem, on_round: OnRound | None) -> None:
    """Fit in the folder, after its checkpoint if it has one."""
    history: list[dict[str, Any]] = []
    timings: list[float] = []
    state = None
    checkpoint = folder.checkpoint()
    if checkpoint is not None:
        method, history, timings, state = checkpoint.method, checkpoint.history, checkpoint.timings, checkpoint.training
    since = time.perf_counter()
    for done in method.fit_rounds(problem, state):
        row = (done.number, None if math.isnan(done.loss) else done.loss, len(done.pseudo), done.changed)
        history.append(dict(zip(HISTORY, row, strict=True)))
        timings.append(round(time.perf_counter() - since, 3))
        folder.save_round(method, history, timings, done)
        if on_round is not None:
            on_round(done, method)
        since = time.perf_counter()
    if history:
        folder.publish()  # once more: a run killed after its last checkpoint has no round left to do it
    else:
        folder.save_model(method)


def finish(folder: RunFolder, problem: Problem, answers: Answers | None) -> None:
    """Predict the pool with the model on disk and, where the answers are known, evaluate."""
    method = folder.model()
    scores = _scores(method, problem)
    known = answers is not None and (answers.labels != UNKNOWN).any()
    metrics = evaluate(scores, answers, problem.classes, problem.setting) if answers is not None and known else None
    facts: dict[str, Any] = {"hashes": problem.fingerprint(), "rule": method.get_params().get("gzsl_rule")}
    folder.save_results(scores, problem.classes, problem.setting, metrics, facts)


def evaluate_run(folder: RunFolder) -> dict[str, Any]:
    """Score the pool of a run anew with its model.

    Raises:
        PrenError: If there are no answers, or the data is not what the run was fitted on.
    """
    config = folder.config()
    problem, answers = config.load_data()
    if answers is None:
        raise PrenError(f"The data of {folder.path} has no answers, so there is nothing to evaluate against.")
    _check_hashes(folder, config, problem.fingerprint())
    metrics = evaluate(_scores(folder.model(), problem), answers, problem.classes, problem.setting)
    return metrics.to_dict()


def _scores(method: Method, problem: Problem) -> NDArray[np.float64]:
    """(N_pool, L) with the columns in the order of the problem's classes, which may have changed places since."""
    place = {name: column for column, name in enumerate(method.classes_.names)}
    return method.scores(problem.pool)[:, [place[name] for name in problem.classes.names]]


def _reopen(out: str | Path, config: RunConfig, hashes: dict[str, str]) -> RunFolder:
    folder = RunFolder.open(out)
    recorded = folder.config()
    different = recorded.resolved().difference(config)
    if different:
        raise PrenError(
            f"{out} holds another run, so it cannot be resumed like this (there, here): {'; '.join(different)}."
        )
    _check_hashes(folder, recorded, hashes)
    return folder


def _check_hashes(folder: RunFolder, recorded: RunConfig, hashes: dict[str, str]) -> None:
    if recorded.record.get("hashes") != hashes:
        raise PrenError(f"The data is not what the run in {folder.path} was started with: its hash has changed.")


def _surroundings(command: str) -> dict[str, Any]:
    packages = ("pren", "torch", "numpy", "scipy", "scikit-learn", "lightning-fabric", "safetensors")
    return {
        "command": command,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }
