"""The report of a run: all its sections in one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pren.foundation.errors import PrenError
from pren.report import gallery, quality
from pren.report.facts import RunFacts
from pren.report.page import Section, Written, render, write_page
from pren.report.reading import collect
from pren.runs.result import RunResult
from pren.runs.store.folder import REPORT_FILE

# Each has a template of its name. A function returns the facts of its section, None if there is nothing to show.
SECTIONS: dict[str, Callable[[RunFacts], object | None]] = {
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


def write_report(result: RunResult, out: Path | None = None) -> Written:
    """Write the report of a finished run.

    Args:
        result: The run. The report is not among the files whose checksums its folder keeps: it can be made anew.
        out: Where to; by default `report.html` in the run's folder.

    Raises:
        PrenError: If the report cannot be written, or there is neither a folder nor `out`.
    """
    if out is None:
        if result.paths is None:
            raise PrenError("out-missing", "This run has no folder: say where to write its report.")
        out = result.paths.folder / REPORT_FILE
    facts = collect(result)
    content = run_page(facts)
    return write_page(out, content, facts.photographs.shown)


def run_page(facts: RunFacts) -> str:
    """The report as text."""
    found = {name: section(facts) for name, section in SECTIONS.items()}
    return render("run", facts, [Section(name, name, known) for name, known in found.items() if known is not None])
