"""The report of a run: all sections in one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pren.foundation.errors import PrenError
from pren.label.result import RunResult
from pren.report import gallery, quality
from pren.report.facts import RunFacts
from pren.report.page import Section, Written, render, write_page
from pren.report.reading import collect
from pren.store.folder import REPORT_FILE

# Each section has a template of its name. A function returns its facts, None to leave it out.
SECTIONS: dict[str, Callable[[RunFacts], object | None]] = {
    "names": gallery.names,
    "label": gallery.to_label,
    "classes": gallery.classes,
    "pairs": gallery.pairs,
    "coverage": quality.coverage,
    "table": quality.class_table,
    "confusion": quality.confusions,
    "map": quality.the_map,
    "training": quality.training,
    "attributes": quality.attributes,
    "details": quality.details,
}


def write_report(result: RunResult, out: Path | None = None, suggested: int = gallery.TO_LABEL) -> Written:
    """Write the report of a finished run.

    Args:
        result: The run.
        out: The file; by default `report.html` in the run folder.
        suggested: How many inputs to label next it shows.

    Raises:
        PrenError: If the report cannot be written, or there is neither a folder nor `out`.
    """
    if out is None:
        if result.paths is None:
            raise PrenError("out-missing", "This run has no folder: give the file for its report.")
        out = result.paths.folder / REPORT_FILE
    facts = collect(result, suggested)
    content = run_page(facts)
    return write_page(out, content, facts.photographs.shown)


def run_page(facts: RunFacts) -> str:
    """The report as text."""
    found = {name: section(facts) for name, section in SECTIONS.items()}
    return render("run", facts, [Section(name, name, known) for name, known in found.items() if known is not None])
