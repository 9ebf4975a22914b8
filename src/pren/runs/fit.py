"""The door: from settings or a configuration to a fitted model, labels and what to expect of them.

`pren.fit` is what the command line, a notebook and the review page call. With a folder, all of it is kept there.
"""

from __future__ import annotations

import json
import logging
import platform
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cache, partial
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
from pren.label.formats import write_labels
from pren.methods.base import Method
from pren.problem import Answers, Problem
from pren.report import write_report
from pren.runs.config import RunConfig
from pren.runs.opening import open_problem
from pren.runs.outlook import outlooks
from pren.runs.reopening import Outcome, check_hashes
from pren.runs.result import RunPaths, RunResult, load_result
from pren.runs.settings import AUTO, Settings
from pren.runs.store.checkpoint import Checkpoint, State
from pren.runs.store.folder import RunFolder
from pren.training.processes import agreed, share, share_text, single_process, watching
from pren.trust import OnRehearsal, Trust, assess, only_sure, usual_draws

log = logging.getLogger(__name__)

NO_FORECAST = "There is no forecast, and labels have no confidence: %s"
OnRound = Callable[[Round, Method], None]


@dataclass(frozen=True)
class Progress:
    """What to call while a run goes on; None for nothing.

    Attributes:
        on_round: After every round of training, when it is saved.
        on_extract: As features are extracted.
        on_rehearsal: After every rehearsal.
    """

    on_round: OnRound | None = None
    on_extract: OnProgress | None = None
    on_rehearsal: OnRehearsal | None = None


def fit(
    data: str | Path | Problem | tuple[Problem, Answers | None] | None = None,
    out: str | Path | None = None,
    *,
    method: str | None = None,
    backbone: str | None = None,
    resume: str | Path | None = None,
    start: str | Path | None = None,
    config: str | Path | None = None,
    report: bool = True,
    progress: Progress | None = None,
    **settings: Any,
) -> RunResult:
    """Fit a method to labelled inputs and a pool, label the pool, and say how far to trust the labels.

    ``pren fit`` calls this, so both give the same results.

    >>> import pren
    >>> result = pren.fit("numbers-features", method="ridge-s2v", rehearsals=0)
    >>> len(result.labels)
    600

    Args:
        data: A folder of photographs, a ``.npz`` file, the name of a data set (`pren.list_datasets`), or a `Problem`
            (alone, or with its `Answers`).
        out: The run folder to make, with labels, model, report and all that is needed to repeat the run; None keeps
            nothing on disk.
        method: A name of `pren.list_methods`, or "auto" for the one with the best forecast.
        backbone: The network that photographs go through (`pren.list_backbones`); several are ``a+b``.
        resume: A run folder to go on with after an interruption; it says all else.
        start: A finished run to start from: its settings, and its model where the method has rounds. `out` is new.
        config: A YAML file with settings, such as `pren tune` writes; what is said here wins.
        report: Whether to write ``report.html`` to the folder.
        progress: What to call while the run goes on.
        **settings: Any of `pren.runs.settings.Settings`, such as ``setting="gzsl"``, ``rehearsals=0`` or
            ``min_accuracy=0.95``, and any parameter of the method, such as ``heads=20``.

    Returns:
        The labels with their confidence, the forecast, figures where answers are known, and the model.

    Raises:
        PrenError: If settings, data or the folder are not as they should be. The message says what to do.
    """
    if isinstance(data, Problem | tuple):
        if out is not None or resume is not None or start is not None:
            raise PrenError(
                "data-not-named",
                "A run folder needs data that can be found again: give the path or the name of the data, or leave out, "
                "resume and start out.",
            )
        settings["data"] = "arrays.npz"  # a name that means data of one's own
    else:
        settings["data"] = data
    said = Settings.of({**settings, "method": method, "backbone": backbone})
    wanted = configure(
        said, resume=resume, start=start, file=None if config is None else Path(config), progress=progress
    )
    problem = (data, None) if isinstance(data, Problem) else data if isinstance(data, tuple) else None
    result = run_config(
        wanted, resume or out, resume=resume is not None, start=start, report=report, progress=progress, problem=problem
    )
    assert result is not None  # there is one process
    return result


def configure(
    settings: Settings,
    *,
    resume: str | Path | None = None,
    start: str | Path | None = None,
    file: Path | None = None,
    fabric: Fabric | None = None,
    progress: Progress | None = None,
) -> RunConfig:
    """The configuration that settings mean, in every process; only the first one needs the files that say it.

    The arguments are those of `fit`; "auto" becomes the method with the best forecast.
    """
    fabric = fabric or single_process()
    if resume is not None and start is not None:
        raise PrenError("option-conflict", "--resume goes on with a run, --continue makes a new one: choose one.")
    text = ""
    with watching(fabric):
        with agreed(fabric):
            if fabric.is_global_zero:
                before = resume or start
                base = None if before is None else RunFolder.open(before).config()
                config = settings.config(base, file)
                found = _best(settings, config, progress or Progress()) if config.method == AUTO else config
                found = found if config.method == AUTO else settings.with_backbone(found)
                if fabric.world_size == 1:
                    return found
                try:
                    text = found.model_dump_json()
                except ValueError as error:  # half a character in a name, for example
                    raise PrenError(
                        "settings-not-text", f"These settings cannot be sent to other processes: {error}"
                    ) from error
        return RunConfig.model_validate_json(share_text(fabric, text))


def _best(settings: Settings, config: RunConfig, progress: Progress) -> RunConfig:
    """The method with the best forecast, seeded."""
    found = outlooks(settings, config, progress.on_extract, progress.on_rehearsal)
    for each in found:
        log.info("%s", each.line())
    return replace(settings, method=None, params={}).config(found[0].config)


def run_config(
    config: RunConfig,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    start: str | Path | None = None,
    report: bool = True,
    command: str = "",
    progress: Progress | None = None,
    fabric: Fabric | None = None,
    problem: tuple[Problem, Answers | None] | None = None,
) -> RunResult | None:
    """Run a configuration, or go on with what an interrupted run left.

    Several processes all call this alike; the first one alone reads and writes the run folder.

    Args:
        config: What to do.
        out: The run folder: new or empty, or with `resume` one that holds this very run; None to keep nothing.
        resume: Whether to go on after the last finished round.
        start: The run whose model this one starts from, where the method has rounds.
        report: Whether to write a report to the folder.
        command: How the run was started, for the record.
        progress: What to call on the way.
        fabric: Where to compute, launched; None for one process on the best device there is.
        problem: The data, if they are in memory.

    Returns:
        The result, in the first process; None in others.

    Raises:
        PrenError: If the configuration, the data or the folder is not as it should be.
    """
    fabric, progress = fabric or single_process(), progress or Progress()
    with watching(fabric):
        with agreed(fabric):
            if out is not None:
                check_is_text(out)
                if not resume and fabric.is_global_zero:
                    RunFolder(out).check_is_free()  # not after minutes of extraction
            config = config.resolved()
            method = config.create_method()
            method.check_processes(fabric.world_size)
        known, answers = open_problem(config, fabric, progress.on_extract) if problem is None else problem
        with agreed(fabric):
            if answers is not None:
                check_answers(answers, known.classes, known.setting)  # not after hours of training
            rehearsals = count_rehearsals(config, method, known)
            hashes = known.fingerprint()
        _check_same_data(fabric, hashes)
        record = {"hashes": hashes, "source": known.source, **_surroundings(command, fabric)}
        if start is not None:
            record["continues"] = str(Path(start).absolute())
        config = config.for_record(record)
        folder: RunFolder | None = None
        with agreed(fabric):
            if fabric.is_global_zero and out is not None:
                if start is not None:
                    RunFolder.open(start)  # says what is wrong with it
                folder = _reopen(out, config) if resume else RunFolder.create(out, config)
        if folder is not None and answers is not None:
            folder.names = answers.names
        with nullcontext() if folder is None else closing(folder):
            if share_text(fabric, "finished" if folder is not None and folder.finished() else ""):
                return None if folder is None else _finished_before(folder, report)
            try:
                method, state = _fit(fabric, folder, config, method, known, answers, progress.on_round)
                trust = _assess(method, known, rehearsals, config, fabric, progress.on_rehearsal)
            except Exception:
                if folder is not None and not resume:
                    folder.discard_if_nothing_done()
                raise
            result: RunResult | None = None
            with agreed(fabric):
                if fabric.is_global_zero:
                    outcome = Outcome.of(method, known, answers, trust)
                    result = _finish(folder, outcome, config, state, report)
    return result


def _fit(
    fabric: Fabric,
    folder: RunFolder | None,
    config: RunConfig,
    method: Method,
    problem: Problem,
    answers: Answers | None,
    on_round: OnRound | None,
) -> tuple[Method, State]:
    """Fit, after the folder's checkpoint if it has one; returns what was fitted, and how that went."""
    checkpoint: Checkpoint | None = None
    with agreed(fabric):
        checkpoint = folder.checkpoint() if folder is not None else None
    state, training = State(history=[], timings=[], pseudo_labels=[]), {}
    with agreed(fabric):
        if checkpoint is not None and not _same(checkpoint.method.tail_, problem.tail):
            raise PrenError(
                "cache-lost",
                "What the backbone has learned is no longer in the cache, and learning it again gives something else "
                "(other threads, maybe): start a new run, or bring the cache back.",
            )
    if checkpoint is not None:
        method, state, training = checkpoint.method, checkpoint.state, checkpoint.training
    start = _model_to_start_from(fabric, config, method)
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
    return method, state


def _same(tail: dict[str, Tensor] | None, other: dict[str, Tensor] | None) -> bool:
    """Whether two backbones have learned the same, or both nothing."""
    known, found = tail or {}, other or {}
    return known.keys() == found.keys() and all(value.equal(found[name].cpu()) for name, value in known.items())


def _model_to_start_from(fabric: Fabric, config: RunConfig, method: Method) -> dict[str, Method]:
    """The model of the run that a run continues, by the name that `fit_rounds` has for it; nothing if there is none.

    A method that fits in one go comes to the same without it.
    """
    run = share_text(fabric, str(config.record.get("continues", "")))
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
            "rehearsals-one", "One rehearsal does not tell how far a forecast misses: take 0, or 2 and more."
        )
    if config.min_accuracy is not None and not count:
        raise PrenError(
            "no-rehearsals", "A least accuracy needs rehearsals, which tell how sure a label is: add --rehearsals 10."
        )
    try:
        check_can_hold_out(problem)
    except PrenError as error:
        if config.rehearsals or config.min_accuracy is not None:
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

    What was fitted is kept also where a method cannot be fitted to fewer classes, unless rehearsals are asked for.
    """
    if not rehearsals:
        return None
    gamma = bool(config.choose_gamma)
    try:
        return assess(method, problem, rehearsals, gamma=gamma, fabric=fabric, on_rehearsal=on_rehearsal)
    except PrenError as error:
        if config.rehearsals or config.min_accuracy is not None:
            raise
        log.warning(NO_FORECAST, error)
        return None


def _finish(folder: RunFolder | None, outcome: Outcome, config: RunConfig, state: State, report: bool) -> RunResult:
    """Label the pool, compare with answers where they are known, and write it all."""
    labels, trust = outcome.labels, outcome.trust
    if config.min_accuracy is not None and trust is not None:
        labels = only_sure(labels, outcome.problem, trust, config.min_accuracy)
        if trust.forecast.apart != 1.0:
            log.warning(
                "The pool looks unlike the labelled inputs: fewer than %g of the labels may be right.",
                config.min_accuracy,
            )
    result = RunResult(
        config=config,
        history=state.history,
        by_answers=state.by_answers,
        paths=None if folder is None else RunPaths(folder.path),
        labels=outcome.predictions(labels),
        forecast=None if trust is None else trust.forecast,
        figures=outcome.figures(),
        outcome=outcome,
    )
    if folder is not None:
        folder.check_held()
        folder.save_model(outcome.method, trust)
        folder.save_results(partial(write_labels, result.labels), result.figures, outcome.problem.recipe)
        if report:
            _try_report(result)
    return result


def _finished_before(folder: RunFolder, report: bool) -> RunResult:
    """The result of a run that was finished before; its report is written if there is none."""
    result = load_result(folder)
    assert result.paths is not None
    if report and result.paths.report is None:
        try:
            result = load_result(folder, with_data=True)
        except PrenError as error:
            log.warning("The report is without photographs: %s", error)
            result = replace(result, missing=str(error))
        _try_report(result)
    return result


def _try_report(result: RunResult) -> None:
    """Write the report; the run is finished, so what goes wrong now is no reason to fail."""
    try:
        write_report(result)
    except PrenError as error:
        log.warning("There is no report: %s", error)


def _reopen(out: str | Path, config: RunConfig) -> RunFolder:
    """The folder of an interrupted run, held, if it is this very run."""
    folder = RunFolder.open(out)
    recorded = folder.config()
    different = recorded.resolved().difference(config)
    if different:
        raise PrenError(
            "other-run",
            f"{out} holds another run, so it cannot be resumed like this (there, here): {'; '.join(different)}.",
        )
    check_hashes(folder, recorded, config.record["hashes"])
    folder.hold(config.record["command"])
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
