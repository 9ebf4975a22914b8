"""`pren.fit`: from settings to a fitted model, labels and a forecast."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pren.foundation.errors import PrenError
from pren.label.result import RunResult
from pren.problem import Answers, Problem
from pren.runs.outlook import outlooks
from pren.runs.run import Progress, run_config
from pren.runs.settings import AUTO, Settings
from pren.store.config import RunConfig
from pren.store.folder import RunFolder
from pren.training.processes import Fabric, agreed, share_text, single_process, watching

log = logging.getLogger(__name__)


# A whole command stays as it is; so does the value after an option, but for a number.
_OPTION = re.compile(r"'pren [^']*'|--set |--(?P<name>[a-z][a-z-]*)(?P<number> (?=\d))?")


def _as_argument(found: re.Match[str]) -> str:
    if found["name"] is None:
        return "" if found[0] == "--set " else found[0]
    name = "start" if found["name"] == "continue" else found["name"].replace("-", "_")
    return f"{name}=" if found["number"] else name


@contextmanager
def _told_in_python() -> Iterator[None]:
    """Have messages name the arguments of `fit` where they name options of the command line."""
    try:
        yield
    except PrenError as error:
        error.args = (_OPTION.sub(_as_argument, str(error)),)
        raise


@_told_in_python()
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
    """Fit a method, label the pool, and forecast how many labels are right.

    ``pren fit`` calls this, so both give the same results.

    >>> import pren
    >>> result = pren.fit("numbers-features", method="ridge-s2v", rehearsals=0)
    >>> len(result.labels)
    600

    Args:
        data: A folder of photographs, a ``.npz`` file, the name of a data set (`pren.list_datasets`), or a `Problem`
            (alone, or with its `Answers`).
        out: The run folder to make, with labels, model, report and record; None writes no files.
        method: A name of `pren.list_methods`, or "auto" for the one with the best forecast.
        backbone: The network that photographs go through (`pren.list_backbones`); several are ``a+b``.
        resume: The folder of an interrupted run to go on with.
        start: A finished run whose settings, and model if the method has rounds, a new run in `out` starts from.
        config: A YAML file with settings, such as one of `pren tune`; arguments override it.
        report: Whether to write ``report.html`` to the folder.
        progress: Functions to call during the run.
        **settings: Any of `pren.runs.settings.Settings`, such as ``setting="gzsl"``, ``rehearsals=0`` or
            ``min_accuracy=0.95``, and any parameter of the method, such as ``heads=20``.

    Returns:
        The labels with their confidence, the forecast, figures where answers are known, and the model.

    Raises:
        PrenError: If settings, data or the folder cannot be used.
    """
    if isinstance(data, Problem | tuple):
        if out is not None or resume is not None or start is not None:
            raise PrenError(
                "data-not-named",
                "A run folder needs data with a path or a name: give one, or omit out, resume and start.",
            )
        problem, _ = pair = (data, None) if isinstance(data, Problem) else data
        settings |= {"data": "arrays.npz", "setting": problem.setting}  # a name for the user's own arrays
    else:
        pair = None
        settings["data"] = data
    said = Settings.of({**settings, "method": method, "backbone": backbone})
    file = None if config is None else Path(config)
    wanted = configure(said, resume=resume, start=start, file=file, progress=progress)
    result = run_config(
        wanted, resume or out, resume=resume is not None, start=start, report=report, progress=progress, problem=pair
    )
    assert result is not None  # this is the only process
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
    """The configuration of settings, in every process; only the first one reads files.

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
                config = settings.finding(base, file)
                found = _best(settings, config, progress or Progress()) if config.method == AUTO else config
                found = found if config.method == AUTO else settings.with_backbone(found)
                if fabric.world_size == 1:
                    return found
                try:
                    text = found.model_dump_json()
                except ValueError as error:  # such as half a character in a name
                    raise PrenError("settings-not-text", f"A setting is not valid text: {error}") from error
        return RunConfig.model_validate_json(share_text(fabric, text))


def _best(settings: Settings, config: RunConfig, progress: Progress) -> RunConfig:
    """The method with the best forecast, seeded."""
    found = outlooks(settings, config, progress.on_extract, progress.on_rehearsal)
    for each in found:
        log.info("%s", each.line())
    return replace(settings, method=None, params={}, setting=None).config(found[0].config)
