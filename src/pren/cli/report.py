"""``pren report``: write a run or an experiment as an HTML page."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli.bundles import bundled
from pren.cli.options import Json, RunData, Threads, check_new
from pren.cli.output import Talk, print_json, say, show_log
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.label.result import RunResult

log = logging.getLogger(__name__)


@bundled
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run folder, or a folder of 'pren compare', 'tune' or 'reproduce'.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="A new file; by default report.html in DIR.")
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--suggest", metavar="N", min=1, help="How many inputs to label next it shows; 12 by default."),
    ] = None,
    *,
    where: RunData,
    threads: Threads = None,
    json: Json = False,
    talk: Talk,
) -> None:
    """Write an HTML page: which labels to trust, what to label next, charts and photographs."""
    show_log(talk)
    check_new(out)
    from pren.report import write_report
    from pren.research.pages import is_experiment, report_experiments

    if is_experiment(folder):
        if count is not None:
            raise PrenError("option-conflict", f"--suggest is for a run, and {folder} is an experiment: leave it out.")
        written = report_experiments(folder, out)
    else:
        asked = {} if count is None else {"suggested": count}
        written = write_report(_opened(folder, where), out, **asked)
    if json:
        found = {"report": str(written.path), "bytes": written.size, "photographs": written.photographs}
        print_json(found)
        return
    say(f"Report: {written.path} ({written.size / 1e6:.1f} MB). Open it in a browser.")


def _opened(folder: Path, where: RunData) -> RunResult:
    """A run with its data; without them if they have moved and the user does not say where to."""
    from dataclasses import replace

    from pren.runs.reopening import load_result

    said = where.said()
    result = load_result(folder)
    try:
        return load_result(folder, with_data=True, **said)
    except PrenError as error:
        if any(said.values()):
            raise
        log.warning("The report has no photographs: %s", error)
        return replace(result, missing=str(error))
