"""A review: the journal of answers, the labels of the latest fit, and what the answers have changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio
import numpy as np

from pren.data.folder.findings import Findings
from pren.data.folder.labels import LABELS, POOL, read_given
from pren.data.tables import read_table
from pren.foundation.errors import PrenError
from pren.foundation.files import make_folder, write_csv
from pren.foundation.lock import Lock
from pren.images.folders import list_images
from pren.label.result import RunResult
from pren.problem import Answers, ClassTable, Problem
from pren.review.app import RefusedError
from pren.review.journal import Entry, Journal, Verdict, given_rows
from pren.review.pictures import Pictures
from pren.review.refit import Refit, Refitter, quick_settings, with_given
from pren.review.snapshot import Snapshot
from pren.runs.fit import fit
from pren.runs.reopening import load_result
from pren.store.folder import RunFolder
from pren.trust import Trust
from pren.trust.confidence import SURE

log = logging.getLogger(__name__)

FOLDER, BEFORE, THUMBNAILS = "review", "labels-before.csv", "thumbnails"


@dataclass(frozen=True)
class Change:
    """What the latest fit has changed.

    Attributes:
        moved: How many labels are others than before, without those that were given.
        groups: The groups that gained or lost photographs: names, and sizes before and after.
        settled: Doubtful names and photographs that are sure now, without an answer.
    """

    moved: int = 0
    groups: tuple[tuple[str, int, int], ...] = ()
    settled: int = 0


class Session:
    """The review of one run, for as long as the application runs.

    Args:
        run: The folder of a finished run on a folder of photographs.
        moved: Where data, weights or cache are now; see `pren.load_result`.
        command: For the message to another process that wants to review the run.
    """

    def __init__(self, run: Path, moved: Mapping[str, str | None] | None = None, command: str = "") -> None:
        known = {key: value for key, value in (moved or {}).items() if value is not None}
        result, trust = _opened(run, known)
        self.problem = _photographs_of(result)
        self.run, self.data, self.moved = run, Path(result.config.data), known
        self.title, self.setting = self.data.absolute().name, result.config.setting
        self.files = list_images(self.data / POOL)
        self.place = {name: place for place, name in enumerate(self.files)}
        self.pictures = Pictures(self.data / POOL, self.files, run / FOLDER / THUMBNAILS)
        self.examples = _examples(self.data)
        own = run / FOLDER
        make_folder(own)
        self._lock = Lock(own, command)
        try:
            self.journal = Journal(own)
            self._touched = _labels_before(own, self.data)
            self.snapshot = Snapshot.of(result, self.files, 0, trust)
        except BaseException:
            self._lock.release()
            raise
        self.first = self.snapshot
        self.change, self.steady = Change(), 0
        self.latest = result
        self.revision = self._needed = 0  # the last entry that a fit has to learn from
        self._writing = threading.RLock()
        self.refitter = Refitter(result.config, trust, self._told, self._take, self._changed)

    async def __aenter__(self) -> Session:
        self.refitter.start()
        if self.journal.position:  # answers of an earlier session
            self._write_labels()
            self._needed = self.journal.position
            self.refitter.want()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await anyio.to_thread.run_sync(self.refitter.end)

    def close(self) -> None:
        """Let others review the run."""
        self.journal.close()
        self._lock.release()

    @property
    def learned(self) -> bool:
        """Whether what is shown has learned from every answer."""
        return self.refitter.doing == "nothing" and self.snapshot.position >= self._needed

    def answer(
        self, window: str, files: Mapping[str, Verdict], groups: Mapping[str, Verdict], since: int | None
    ) -> Entry:
        """Keep an answer, write ``labels.csv`` and fit again soon."""
        with self._writing:
            entry = self.journal.add(window, files, groups, since)
            self._after(entry)
        return entry

    def undo(self, window: str) -> Entry | None:
        """Take back the last answer; None if there is none."""
        with self._writing:
            entry = self.journal.undo(window)
            if entry is not None:
                self._after(entry)
        return entry

    def example(self, name: str, number: int) -> bytes:
        """A labelled photograph of a seen class, small."""
        files = self.examples.get(name, [])
        if not 0 <= number < len(files):
            raise RefusedError(404, "photograph-unknown", "There is no such photograph.")
        return Pictures(self.data, files, self.run / FOLDER / THUMBNAILS).thumbnail(number)

    def use_classes(self, table: ClassTable, recipe: dict[str, Any]) -> None:
        """Fit again with other classes."""
        self.problem = replace(self.problem, classes=table, given=None, recipe=recipe)
        self._changed()
        self.refitter.want(other_classes=True)

    def _told(self) -> tuple[Problem, Answers, int]:
        """The problem with all labels so far."""
        with self._writing:
            assert self.latest.outcome is not None
            assert self.latest.outcome.answers is not None
            answers = self.latest.outcome.answers
            return with_given(self.problem, answers, read_given(self.data)), answers, self.journal.position

    def _after(self, entry: Entry) -> None:
        if any(verdict.name for verdict in entry.files.values()) or set(entry.files) & self._touched.keys():
            self._write_labels()
            self._needed = entry.number
            self.refitter.want()
        self._changed()

    def _write_labels(self) -> None:
        verdicts = self.journal.verdicts()
        now = read_given(self.data)
        before = dict(now)
        for name in {name for each in self.journal.entries for name in each.files} - self._touched.keys():
            self._touched[name] = before.get(name, "")
        write_csv(self.run / FOLDER / BEFORE, ("file", "class"), sorted(self._touched.items()))
        write_csv(self.data / LABELS, ("file", "class"), given_rows(now, self._touched, verdicts))

    def _take(self, done: Refit) -> None:
        """Show a fit that is done."""
        after = Snapshot.of(done.result, self.files, done.position, done.trust)
        before, answered = self.snapshot, set(self.journal.verdicts())
        if before.position != after.position or before.table.names != after.table.names:
            self.change = _compare(before, after, [self.place[name] for name in answered if name in self.place])
            self.steady = 0 if self.change.moved else self.steady + 1
        elif after.forecast is None:
            after = before  # the same answers without a forecast say nothing new
        self.snapshot, self.latest = after, done.result
        self._changed()

    def _changed(self) -> None:
        self.revision += 1


def _compare(before: Snapshot, after: Snapshot, answered: list[int]) -> Change:
    free = np.ones(len(after.labels), dtype=bool)
    free[answered] = False
    names = np.array([*before.table.names, ""]), np.array([*after.table.names, ""])
    old, new = names[0][before.labels], names[1][after.labels]
    sizes = ((name, int((old == name).sum()), int((new == name).sum())) for name in after.table.names)
    settled = sum(
        group.doubtful and name in after.names and not after.names[name].doubtful and bool(after.names[name].look_at)
        for name, group in before.names.items()
    )
    surer = free & (before.confidence < SURE) & (after.confidence >= SURE)
    return Change(
        int((free & (old != new)).sum()),
        tuple(size for size in sizes if size[1] != size[2]),
        settled + int(surer.sum()),
    )


def _opened(run: Path, moved: dict[str, Any]) -> tuple[RunResult, Trust | None]:
    """A run with its data; fitted again, in memory, if labels were given since."""
    try:
        result = load_result(run, with_data=True, **moved)
    except PrenError as error:
        if error.code != "data-changed":
            raise
        log.info("The labels have changed since the run: fitting again.")
        trust, config = Trust.load(run), RunFolder.open(run).config()
        quick = fit(start=run, report=False, **quick_settings(config, trust), **moved)
        whole = quick.config.model_copy(update={"rehearsals": config.rehearsals})  # as later fits are to be
        return replace(quick, config=whole), trust
    assert result.outcome is not None
    return result, result.outcome.trust


def _photographs_of(result: RunResult) -> Problem:
    """The problem of a run that can be reviewed."""
    outcome = result.outcome
    assert outcome is not None
    if "hold_out" in result.config.options:
        raise PrenError("hold-out", "The pool of this run has labelled inputs: fit again without --hold-out.")
    if outcome.problem.source.get("name") != "folder":
        raise PrenError("no-photographs", "Only runs on a folder of photographs can be reviewed.")
    return outcome.problem


def _examples(data: Path) -> dict[str, list[str]]:
    """The labelled photographs of every seen class, relative to the folder of the data."""
    found: dict[str, list[str]] = {}
    for name in list_images(data / "images"):
        found.setdefault(name.split("/")[0], []).append(f"images/{name}")
    return found


def _labels_before(own: Path, data: Path) -> dict[str, str]:
    """The class that each photograph in the journal had in ``labels.csv`` before this review; "" for none."""
    if not (own / BEFORE).exists():
        return {}
    table = read_table(own, BEFORE, "file,class", Findings())
    return {} if table is None else {row.cells[0]: row.cells[1] for row in table.rows}
