"""Fit a method in a run folder: from a configuration to a model, predictions and metrics on disk."""

from __future__ import annotations

import json
import logging
import platform
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric
from torch import Tensor

from pren.core.progressive import Round
from pren.data import check_can_hold_out
from pren.evaluation import check_answers, round_figures
from pren.foundation.errors import PrenError
from pren.foundation.files import check_is_text
from pren.foundation.version import __version__
from pren.images.extraction import OnProgress
from pren.methods.base import Method
from pren.problem import Answers, Problem
from pren.runs.config import RunConfig
from pren.runs.opening import open_problem
from pren.runs.reopening import Outcome, check_hashes
from pren.runs.store.checkpoint import Checkpoint, State
from pren.runs.store.folder import RunFolder
from pren.runs.store.tables import ImageTables
from pren.training.processes import agreed, share, share_text, single_process, watching
from pren.trust import OnRehearsal, Trust, assess, only_sure, usual_draws

log = logging.getLogger(__name__)

NO_FORECAST = "There is no forecast, and labels have no confidence: %s"
OnRound = Callable[[Round, Method], None]
OnFinish = Callable[[RunFolder, Outcome], None]


def train(
    config: RunConfig,
    out: str | Path,
    *,
    resume: bool = False,
    start: str | Path | None = None,
    command: str = "",
    on_round: OnRound | None = None,
    on_extract: OnProgress | None = None,
    on_rehearsal: OnRehearsal | None = None,
    on_finish: OnFinish | None = None,
    fabric: Fabric | None = None,
) -> RunFolder:
    """Run a configuration, or go on with what an interrupted one left.

    Of several processes all call this alike; the first one alone reads and writes the run folder.

    Args:
        config: What to do.
        out: The run folder: new or empty, or with `resume` one that holds this very run.
        resume: Go on after the last finished round.
        start: The run whose model this one starts from, where the method has rounds.
        command: How the run was started, for the record.
        on_round: Called after every round, when it is saved.
        on_extract: Called as features are extracted, if they are.
        on_rehearsal: Called after every rehearsal, if there are any.
        on_finish: Called when all is written, by the process that has written it; not for a run that was finished.
        fabric: Where to compute, launched; None for one process on the best device there is.

    Raises:
        PrenError: If the configuration, the data or the folder is not as it should be.
    """
    fabric = fabric or single_process()
    with watching(fabric):
        with agreed(fabric):
            check_is_text(out)
            if not resume and fabric.is_global_zero:
                RunFolder(out).check_is_free()  # not after minutes of extraction
            config = config.resolved()
            method = config.create_method()
            method.check_processes(fabric.world_size)
        problem, answers = open_problem(config, fabric, on_extract)
        with agreed(fabric):
            if answers is not None:
                check_answers(answers, problem.classes, problem.setting)  # not after hours of training
            rehearsals = count_rehearsals(config, method, problem)
            hashes = problem.fingerprint()
        _check_same_data(fabric, hashes)
        folder: RunFolder | None = None
        with agreed(fabric):
            if fabric.is_global_zero:
                record = {"hashes": hashes, "source": problem.source, **_surroundings(command, fabric)}
                if start is not None:
                    RunFolder.open(start)  # says what is wrong with it
                    record["continues"] = str(Path(start).absolute())
                folder = _reopen(out, config, record) if resume else RunFolder.create(out, config.for_record(record))
        if folder is not None and answers is not None:
            folder.tables = ImageTables(answers.names, answers.unreadable)
        with nullcontext() if folder is None else closing(folder):
            if not share_text(fabric, "finished" if folder is not None and folder.finished() else ""):
                try:
                    method = _fit(fabric, folder, method, problem, answers, on_round)
                except Exception:
                    if folder is not None and not resume:
                        folder.discard_if_nothing_done()
                    raise
                trust = _assess(method, problem, rehearsals, config, fabric, on_rehearsal)
                with agreed(fabric):
                    if folder is not None:
                        outcome = _finish(folder, method, trust, problem, answers, config, hashes)
                        if on_finish is not None:
                            on_finish(folder, outcome)
    return folder or RunFolder(out)


def _fit(
    fabric: Fabric,
    folder: RunFolder | None,
    method: Method,
    problem: Problem,
    answers: Answers | None,
    on_round: OnRound | None,
) -> Method:
    """Fit in the folder, after its checkpoint if it has one; returns what was fitted."""
    checkpoint: Checkpoint | None = None
    with agreed(fabric):
        checkpoint = folder.checkpoint() if folder is not None else None
    state, training = State(history=[], timings=[], pseudo_labels=[]), {}
    with agreed(fabric):
        if checkpoint is not None and not _same(checkpoint.method.tail_, problem.tail):
            raise PrenError(
                "cache-lost",
                "What the backbone has learned is no longer in the cache, and came out otherwise when it was learned "
                "again, maybe with other threads: begin a new run, or bring the cache back.",
            )
    if checkpoint is not None:
        method, state, training = checkpoint.method, checkpoint.state, checkpoint.training
    start = _model_to_start_from(fabric, folder, method)
    since, saved = time.perf_counter(), False
    for done in method.fit_rounds(problem, share(fabric, training) or None, fabric, **start):
        known = {} if answers is None else round_figures(done.pseudo, done.labels, answers, problem.setting)
        state = state.after(done, time.perf_counter() - since, problem.classes.names, known)
        with agreed(fabric):
            if folder is not None:
                folder.save_round(method, state)
        if on_round is not None:
            on_round(done, method)
        since, saved = time.perf_counter(), True
    with agreed(fabric):
        if folder is not None and checkpoint is not None and not saved:
            folder.publish(checkpoint.path, checkpoint.state)  # a run killed right after its last checkpoint has not
        elif folder is not None and not saved:
            folder.save_model(method)
    return method


def _same(tail: dict[str, Tensor] | None, other: dict[str, Tensor] | None) -> bool:
    """Whether two backbones have learned the same, or both nothing."""
    known, found = tail or {}, other or {}
    return known.keys() == found.keys() and all(value.equal(found[name].cpu()) for name, value in known.items())


def _model_to_start_from(fabric: Fabric, folder: RunFolder | None, method: Method) -> dict[str, Method]:
    """The model of the run that a run continues, by the name that `fit_rounds` has for it; nothing if there is none.

    A method that fits in one go comes to the same without it.
    """
    run = share_text(fabric, "" if folder is None else str(folder.config().record.get("continues", "")))
    with agreed(fabric):
        if not run:
            return {}
        if type(method).fit_rounds is Method.fit_rounds:
            log.info("%s fits in one go: nothing of the model in %s is needed for it.", method.name, run)
            return {}
        return {"start": RunFolder.open(run).model()}


def count_rehearsals(config: RunConfig, method: Method, problem: Problem) -> int:
    """How often to rehearse: as often as asked, else as the method says; never unasked where a backbone is trained.

    Raises:
        PrenError: If it cannot be as often as asked, or labels are to be sure and nothing would tell how sure they are.
    """
    trains = "backbone" in method.params and len(problem.train.sample_shape) > 1
    count = config.rehearsals
    if count is None:
        count = 0 if trains else usual_draws(method, problem)
    if count == 1:
        raise PrenError(
            "rehearsals-one", "--rehearsals 1 does not tell how far a forecast misses: take 0, or 2 and more."
        )
    if config.precision is not None and not count:
        raise PrenError(
            "no-rehearsals", "--precision needs rehearsals, which tell how sure a label is: add --rehearsals 10."
        )
    try:
        check_can_hold_out(problem)
    except PrenError as error:
        if config.rehearsals or config.precision is not None:
            raise
        log.warning(NO_FORECAST, error)
        return 0
    return count


def _assess(
    method: Method,
    problem: Problem,
    rehearsals: int,
    config: RunConfig,
    fabric: Fabric,
    on_rehearsal: OnRehearsal | None,
) -> Trust | None:
    """Rehearse, all processes together; the method has the chosen γ then.

    What was fitted is kept also where a method cannot be fitted to fewer classes, unless somebody relies on rehearsals.
    """
    if not rehearsals:
        return None
    gamma = bool(config.choose_gamma)
    try:
        return assess(method, problem, rehearsals, gamma=gamma, fabric=fabric, on_rehearsal=on_rehearsal)
    except PrenError as error:
        if config.rehearsals or config.precision is not None:
            raise
        log.warning(NO_FORECAST, error)
        return None


def _finish(
    folder: RunFolder,
    method: Method,
    trust: Trust | None,
    problem: Problem,
    answers: Answers | None,
    config: RunConfig,
    hashes: dict[str, str],
) -> Outcome:
    """Predict the pool and, where the answers are known, evaluate."""
    folder.check_held()
    if trust is not None:
        folder.save_trust(method, trust)
    outcome = Outcome.of(method, problem, answers, trust)
    labels, metrics = outcome.labels, outcome.figures()
    if metrics is not None:
        metrics = {"hashes": hashes, "rule": method.get_params().get("gzsl_rule"), **metrics}
    if config.precision is not None and trust is not None:
        labels = only_sure(labels, problem, trust, config.precision)
        if trust.forecast.apart != 1.0:
            log.warning(
                "The pool looks unlike the labelled images: a precision of %g may not be kept.", config.precision
            )
    folder.save_results(labels, problem.classes.names, metrics, problem.recipe)
    return outcome


def _reopen(out: str | Path, config: RunConfig, record: dict[str, Any]) -> RunFolder:
    """The folder of an interrupted run, held, if it is this very run."""
    folder = RunFolder.open(out)
    recorded = folder.config()
    different = recorded.resolved().difference(config)
    if different:
        raise PrenError(
            "other-run",
            f"{out} holds another run, so it cannot be resumed like this (there, here): {'; '.join(different)}.",
        )
    check_hashes(folder, recorded, record["hashes"])
    folder.hold(record["command"])
    return folder


def _check_same_data(fabric: Fabric, hashes: dict[str, str]) -> None:
    """Every process reads the data itself, maybe from a disk of its own."""
    first = share_text(fabric, json.dumps(hashes))
    with agreed(fabric):
        if json.loads(first) != hashes:
            raise PrenError(
                "data-differs", "The data here is not what the first process has: copy the same files to every node."
            )


@cache  # they are read from the disk
def _versions() -> dict[str, str]:
    packages = ("torch", "timm", "pillow", "numpy", "scipy", "scikit-learn", "lightning-fabric", "safetensors")
    return {"pren": __version__, **{name: version(name) for name in packages}}


def _surroundings(command: str, fabric: Fabric) -> dict[str, Any]:
    return {
        "command": command,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "processes": fabric.world_size,
        "python": platform.python_version(),
        "versions": dict(_versions()),
    }
