"""Run a configuration: open the data, train, rehearse, label the pool, and write a run folder if there is one."""

from __future__ import annotations

import json
import logging
import platform
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pren.evaluation import check_answers
from pren.foundation.errors import PrenError
from pren.foundation.files import check_is_text
from pren.foundation.version import __version__
from pren.images.extraction import OnProgress
from pren.label.formats import write_labels
from pren.label.names import group_names
from pren.label.outcome import Outcome
from pren.label.result import RunPaths, RunResult
from pren.problem import Answers, Problem
from pren.problem.copies import counted_once
from pren.report import write_report
from pren.runs.copies import tell_copies
from pren.runs.opening import open_problem
from pren.runs.reopening import check_same_data, load_result
from pren.runs.steps import OnRound, check_rehearsals, count_rehearsals, rehearse, train
from pren.store.checkpoint import State
from pren.store.config import SOURCES, RunConfig
from pren.store.folder import RunFolder
from pren.training.processes import Fabric, agreed, share_text, single_process, watching
from pren.trust import OnRehearsal, only_sure

log = logging.getLogger(__name__)

OF_THE_START = ("command", "started", "continues")  # what an interrupted run keeps in its record


@dataclass(frozen=True)
class Progress:
    """Functions to call during a run; None for none.

    Attributes:
        on_round: After every round of training is saved.
        on_extract: As features are extracted.
        on_rehearsal: After every rehearsal.
    """

    on_round: OnRound | None = None
    on_extract: OnProgress | None = None
    on_rehearsal: OnRehearsal | None = None


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
    """Run a configuration, or resume an interrupted run.

    Several processes call this in the same way; only the first one reads and writes the run folder.

    Args:
        config: The configuration.
        out: The run folder: new or empty, or the folder of this run with `resume`; None writes no files.
        resume: Whether to go on after the last finished round.
        start: The run whose model this one starts from, if the method has rounds.
        report: Whether to write a report to the folder.
        command: The command of the run, for the record.
        progress: Functions to call during the run.
        fabric: Where to compute, launched; None for one process on the best device.
        problem: The data, if they are in memory.

    Returns:
        The result, in the first process; None in others.

    Raises:
        PrenError: If the configuration, the data or the folder cannot be used.
    """
    fabric, progress = fabric or single_process(), progress or Progress()
    with watching(fabric), ExitStack() as held:
        config = _prepare(config, out, resume, fabric)
        asked = _asked(command, start, fabric)
        # There from the first second, so that a run can go on that is interrupted in any phase.
        folder = _take_folder(config.for_record(asked), out, resume, start, fabric, held)
        try:
            method = config.create_method()
            known, answers = open_problem(config, fabric, progress.on_extract) if problem is None else problem
            config = config.found(known)
            with agreed(fabric):
                if answers is not None:
                    check_answers(answers, known.classes, known.setting)  # before hours of training
                rehearsals = count_rehearsals(config, method, known)
            config = config.for_record({"hashes": _same_hashes(known, fabric), "source": known.source, **asked})
            folder = _settle(folder, config, out, resume, fabric, held)
            if folder is not None:
                config = config.model_copy(update={"record": folder.config().record})
            if share_text(fabric, "finished" if folder is not None and folder.finished() else ""):
                return None if folder is None else _finished_before(folder, report)
            taught, told = counted_once(known, answers)
            if folder is not None and told is not None:
                folder.names = told.names
            if fabric.is_global_zero:
                tell_copies(known, answers)
            method, state = train(fabric, folder, config, method, taught, told, progress.on_round)
            trust = rehearse(method, taught, rehearsals, config, fabric, progress.on_rehearsal)
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


def _prepare(config: RunConfig, out: str | Path | None, resume: bool, fabric: Fabric) -> RunConfig:
    """The resolved configuration; refuses a bad folder before minutes of extraction."""
    with agreed(fabric):
        if out is not None:
            check_is_text(out)
            if not resume and fabric.is_global_zero:
                RunFolder(out).check_is_free()
        config = config.resolved()
        check_rehearsals(config)
        config.create_method().check_processes(fabric.world_size)
    return config


def _take_folder(
    config: RunConfig,
    out: str | Path | None,
    resume: bool,
    start: str | Path | None,
    fabric: Fabric,
    held: ExitStack,
) -> RunFolder | None:
    """A new run folder, held; None in other processes than the first, without `out`, and with `resume`.

    Only the first process may have been told to resume: the others need not have the folder.
    """
    with agreed(fabric):
        if not fabric.is_global_zero or out is None or resume:
            return None
        if start is not None:
            RunFolder.open(start)  # raises if it is damaged
        folder = RunFolder.create(out, config)
        held.callback(folder.close)
        return folder


def _settle(
    folder: RunFolder | None,
    config: RunConfig,
    out: str | Path | None,
    resume: bool,
    fabric: Fabric,
    held: ExitStack,
) -> RunFolder | None:
    """The run folder with the record of the data; that of an interrupted run is held from here on."""
    with agreed(fabric):
        if fabric.is_global_zero and out is not None and resume:
            folder = _reopen(out, config)
            held.callback(folder.close)
        if folder is not None and not folder.finished() and "hashes" not in (begun := folder.config().record):
            kept = {key: begun[key] for key in OF_THE_START if key in begun}
            folder.record(config.model_copy(update={"record": {**config.record, **kept}}))
    return folder


def _finish(folder: RunFolder | None, outcome: Outcome, config: RunConfig, state: State, report: bool) -> RunResult:
    """Label the pool, evaluate the labels if there are answers, and write the results."""
    labels, trust = outcome.labels, outcome.trust
    if config.min_accuracy is not None and trust is not None:
        labels = only_sure(labels, outcome.problem, trust, config.min_accuracy)
        if trust.forecast.apart != 1.0:
            share = config.min_accuracy
            log.warning("The pool is unlike the labelled inputs: less than %g of the labels may be right.", share)
    found = outcome.predictions(labels)
    result = RunResult(
        config=config,
        history=state.history,
        by_answers=state.by_answers,
        paths=None if folder is None else RunPaths(folder.path),
        labels=found,
        forecast=None if trust is None else trust.forecast,
        figures=outcome.figures(),
        outcome=outcome,
        names=group_names(found, outcome.method, trust),
    )
    if folder is not None:
        folder.check_held()
        folder.save_model(outcome.method, trust)
        folder.save_results(partial(write_labels, result.labels), result.figures, outcome.problem.recipe)
        if report:
            _try_report(result)
    return result


def _finished_before(folder: RunFolder, report: bool) -> RunResult:
    """The result of a finished run; writes its report if there is none."""
    result = load_result(folder)
    assert result.paths is not None
    if report and result.paths.report is None:
        try:
            result = load_result(folder, with_data=True)
        except PrenError as error:
            log.warning("The report has no photographs: %s", error)
            result = replace(result, missing=str(error))
        _try_report(result)
    return result


def _try_report(result: RunResult) -> None:
    """Write the report; a failure is only a warning, as the run is finished."""
    try:
        write_report(result)
    except PrenError as error:
        log.warning("The report was not written: %s", error)


def _reopen(out: str | Path, config: RunConfig) -> RunFolder:
    """The folder of an interrupted run, held; a `PrenError` if it is another run."""
    folder = RunFolder.open(out)
    recorded = folder.config()
    if recorded.find_setting:  # it was interrupted before the setting was found
        recorded = recorded.model_copy(update={"setting": config.setting, "find_setting": False})
    if "hashes" not in recorded.record:  # or before the sources were
        pinned = {key: config.options[key] for key in SOURCES if key in config.options}
        recorded = recorded.model_copy(update={"options": {**pinned, **recorded.options}})
    different = recorded.resolved().difference(config)
    if different:
        raise PrenError("other-run", f"{out} has a run with other settings (there, here): {'; '.join(different)}.")
    if "hashes" in recorded.record:  # else it was interrupted before the data were open
        check_same_data(folder, recorded, config.record["hashes"], config.record["source"])
    folder.hold(config.record["command"])
    return folder


def _same_hashes(problem: Problem, fabric: Fabric) -> dict[str, str]:
    """The hashes of the data; a `PrenError` if processes, maybe on different disks, have different data."""
    with agreed(fabric):
        hashes = problem.fingerprint()
    first = share_text(fabric, json.dumps(hashes))
    with agreed(fabric):
        if json.loads(first) != hashes:
            raise PrenError("data-differs", "The data differ between machines: copy the same files to every node.")
    return hashes


@cache  # reading them takes time
def _versions() -> dict[str, str]:
    packages = ("torch", "timm", "pillow", "numpy", "scipy", "scikit-learn", "lightning-fabric", "safetensors")
    return {"pren": __version__, **{name: version(name) for name in packages}}


def _asked(command: str, start: str | Path | None, fabric: Fabric) -> dict[str, Any]:
    """What is recorded before the data are opened."""
    return {
        "command": command,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "processes": fabric.world_size,
        "python": platform.python_version(),
        "versions": dict(_versions()),
        **({} if start is None else {"continues": str(Path(start).absolute())}),
    }
