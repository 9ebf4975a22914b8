"""The door: from settings to a fitted model, labels and what to expect of them.

`pren.fit` is what the command line, a notebook and the review page call. With a folder, all of it is kept there.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric

from pren.foundation.errors import PrenError
from pren.problem import Answers, Problem
from pren.runs.config import RunConfig
from pren.runs.outlook import outlooks
from pren.runs.result import RunResult
from pren.runs.run import Progress, run_config
from pren.runs.settings import AUTO, Settings
from pren.runs.store.folder import RunFolder
from pren.training.processes import agreed, share_text, single_process, watching

log = logging.getLogger(__name__)


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
