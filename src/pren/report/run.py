"""The report of a run: all its sections in one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pren.foundation.errors import PrenError
from pren.foundation.files import write_bytes
from pren.foundation.version import __version__
from pren.methods.registry import METHODS
from pren.report import gallery, quality, training
from pren.report.facts import RunFacts, collect
from pren.report.html import Html, tag
from pren.report.opening import opening, subtitle_of, title_of
from pren.report.page import Section, page
from pren.report.photographs import Photographs
from pren.runs.result import RunResult
from pren.runs.store.folder import REPORT_FILE


@dataclass(frozen=True)
class Written:
    """A report on disk: where, how large, and how many photographs are in it."""

    path: Path
    size: int
    photographs: int


def write_report(result: RunResult, out: Path | None = None) -> Written:
    """Write the report of a finished run.

    Args:
        result: The run. The report is not among the files whose checksums its folder keeps: it can be made anew.
        out: Where to; by default `report.html` in the run's folder.

    Raises:
        PrenError: If the report cannot be written, or there is neither a folder nor `out`.
    """
    if out is None and result.paths is None:
        raise PrenError("out-missing", "This run has no folder: say where to write its report.")
    facts = collect(result)
    inputs = None if facts.details is None else facts.details.inputs
    photographs = Photographs(inputs, gallery.expected_photographs(facts))
    content = run_page(facts, photographs).encode()
    path = out if out is not None or result.paths is None else result.paths.folder / REPORT_FILE
    assert path is not None
    write_bytes(path, content)
    return Written(path, len(content), photographs.asked - photographs.left_out)


def run_page(facts: RunFacts, photographs: Photographs) -> str:
    """The report as text."""
    method = METHODS[facts.summary["method"]].title
    sections = [
        gallery.to_label(facts, photographs),
        gallery.classes(facts, photographs),
        gallery.pairs(facts, photographs),
        quality.coverage(facts),
        quality.class_table(facts),
        quality.confusions(facts),
        quality.the_map(facts),
        training.curves(facts),
        quality.attributes(facts, method),
        training.details(facts),
    ]
    there: list[Section] = [section for section in sections if section is not None]
    notes = tag("div", [tag("p", note) for note in _notes(facts, photographs)], class_="notes")
    top = Html(f"{opening(facts)}{notes}")
    footer = f"Made by pren {__version__} from {facts.summary['run']}. This page asks nobody for anything."
    return page(title_of(facts.summary), "Zero-shot labels", subtitle_of(facts), top, there, footer)


def _notes(facts: RunFacts, photographs: Photographs) -> list[str]:
    """What this report cannot show, and why."""
    notes = []
    if facts.details is None:
        notes.append(
            f"Without photographs, map and suggestions, because the data cannot be opened: {facts.missing} If they "
            "have moved, say where they are: pren report RUN --data PATH."
        )
    elif not photographs.there:
        notes.append("These data are features, so there are no photographs to show.")
    elif photographs.left_out:
        notes.append(f"{photographs.left_out} photographs cannot be read any more, or would make this page too large.")
    return notes
