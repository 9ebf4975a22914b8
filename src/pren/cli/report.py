"""``pren report``: a run or an experiment as a page to look at."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli.bundles import bundled
from pren.cli.options import Json, Threads, check_new
from pren.cli.output import print_json, say, show_log
from pren.cli.vision import RunData
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.runs.reopening import Outcome
    from pren.runs.store.folder import RunFolder

log = logging.getLogger(__name__)

NoReport = Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")]


@bundled
def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="A run folder, or what 'pren compare', 'tune' or 'reproduce' wrote to."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Where to write it; not over a file. By default report.html in FOLDER."),
    ] = None,
    *,
    where: RunData,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Make one HTML file to look at: what to trust, what to label next, charts and photographs. It needs no network."""
    show_log()
    from pren.report import report_run
    from pren.research.pages import is_experiment, report_experiments
    from pren.runs.store.folder import RunFolder

    check_new(out)
    if is_experiment(folder):
        written = report_experiments(folder, out)
    else:
        run = RunFolder.open(folder)
        written = report_run(run, *_opened(run, where), out)
    if json:
        found = {"report": str(written.path), "bytes": written.size, "photographs": written.photographs}
        print_json(found)
        return
    say(f"Report: {written.path} ({written.size / 1e6:.1f} MB). Open it in a browser.")


def _opened(run: RunFolder, where: RunData) -> tuple[Outcome | None, str]:
    """A run's model and data; if these are not there, and nobody has said where, why."""
    from pren.runs.reopening import open_run

    said = where.said()
    if not run.finished():
        return None, ""  # which the report says better
    try:
        return open_run(run, **said), ""
    except PrenError as error:
        if any(said.values()):
            raise
        log.warning("The report is without photographs: %s", error)
        return None, str(error)


def write_report(run: RunFolder, outcome: Outcome | None) -> None:
    """Write the report of a run that has been finished; what goes wrong is no reason to fail now."""
    from pren.report import report_run

    try:
        report_run(run, *((outcome, "") if outcome is not None else _opened(run, RunData())))
    except PrenError as error:
        log.warning("There is no report: %s", error)
