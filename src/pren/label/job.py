"""Label any number of inputs: in parts that are written at once and joined at the end."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pren.foundation.errors import PrenError
from pren.foundation.files import replacing, sha256
from pren.foundation.lock import Lock
from pren.label.formats import WRITERS
from pren.label.parts import Parts
from pren.label.predictions import Row
from pren.label.predictor import Opened, Predictor
from pren.label.sorting import Sorter
from pren.methods.storage import MODEL_FILE
from pren.training.processes import Fabric, agreed, single_process
from pren.trust import TRUST_FILE

log = logging.getLogger(__name__)

ROWS = 4096  # per part
SHOWN = 20  # warnings about unreadable files
OnLabelled = Callable[[int, int, int], None]  # inputs done, done by this call, all inputs


@dataclass(frozen=True)
class Wanted:
    """Which labels; see `Predictor.label`."""

    top: int = 5
    among: str | None = None
    min_accuracy: float | None = None


@dataclass
class Labelled:
    """Counts: inputs, classes per input, inputs that cannot be read, inputs without a label."""

    inputs: int
    ranks: int
    unreadable: int = 0
    unsure: int = 0
    first_error: str = ""

    def watch(self, batches: Iterator[list[Row]]) -> Iterator[list[Row]]:
        """Count rows, and warn of unreadable files."""
        for batch in batches:
            for row in batch:
                if row.error:
                    self.first_error = self.first_error or row.error
                    self.unreadable += 1
                    if self.unreadable <= SHOWN:
                        log.warning("%s", row.error)
                elif not row.label:
                    self.unsure += 1
            yield batch


def label(
    predictor: Predictor,
    run: Path,
    opened: Opened,
    out: Path,
    form: str,
    wanted: Wanted,
    sorter: Sorter | None = None,
    command: str = "",
    on_progress: OnLabelled | None = None,
    fabric: Fabric | None = None,
) -> Labelled:
    """Write a table of labels; finished parts of an interrupted call are used.

    Several processes share the parts, and the first one joins them. They need a common folder.

    Args:
        predictor: With the model of `run`.
        run: The folder of the model.
        opened: The inputs.
        out: The table. Its parts are in a folder beside it until it is complete.
        form: One of `WRITERS`.
        wanted: Which labels.
        sorter: Also sorts the photographs into folders.
        command: For the message to another process that wants to write the same table.
        on_progress: Called after every few inputs.
        fabric: The processes, launched; None for this one.

    Raises:
        PrenError: If the table cannot be written, another process writes it, or no input can be read.
    """
    fabric = fabric or single_process()
    among, _ = predictor.check(wanted.top, wanted.among, wanted.min_accuracy)
    ranks = min(wanted.top, int(predictor.model.classes_.among(among).sum()))
    facts = {"model": _digest(run), "source": opened.looks(), "inputs": len(opened), "rows": ROWS}
    parts = Parts(out, {**facts, "top": ranks, "among": among, "min_accuracy": wanted.min_accuracy})
    sizes = [min(ROWS, len(opened) - start) for start in range(0, len(opened), ROWS)]
    done = Labelled(len(opened), ranks)
    lock = None
    try:
        with agreed(fabric):
            if fabric.is_global_zero:
                parts.make_folder()
                lock = Lock(parts.folder, command)
                parts.claim()
        with agreed(fabric):
            parts.check()  # another machine may see another folder or other files
        with agreed(fabric), parts.telling_others():
            own = range(fabric.global_rank, len(sizes), fabric.world_size)
            _label_parts(predictor, opened, parts, wanted, own, on_progress)
            parts.wait(len(sizes))
        with agreed(fabric):
            if fabric.is_global_zero:
                _join(parts, sizes, form, done, sorter)
    finally:
        if lock is not None:
            if not parts.any():  # do not leave an empty folder
                parts.remove()
            lock.release()
    return done


def _label_parts(
    predictor: Predictor, opened: Opened, parts: Parts, wanted: Wanted, numbers: range, on_progress: OnLabelled | None
) -> None:
    left = [number for number in numbers if not parts.has(number)]
    own = sum(min(ROWS, len(opened) - number * ROWS) for number in numbers)
    before = own - sum(min(ROWS, len(opened) - number * ROWS) for number in left)
    if before:
        log.info("%d of %d inputs are labelled already, in %s.", before, own, parts.folder)
    now = 0
    for number in left:
        part = opened.part(number * ROWS, (number + 1) * ROWS)

        def told(few: int, now: int = now) -> None:
            if on_progress is not None:
                on_progress(before + now + few, now + few, own)

        found = predictor.label(part, wanted.top, wanted.among, wanted.min_accuracy, told)
        parts.write(number, found.rows())
        now += len(part)


def _join(parts: Parts, sizes: list[int], form: str, done: Labelled, sorter: Sorter | None) -> None:
    """Join the parts into the table and remove them; a `PrenError` if no input can be read."""
    with replacing(parts.out) as temporary:
        rows = done.watch(parts.read(sizes))
        WRITERS[form](temporary, done.ranks, rows if sorter is None else sorter.watch(rows))
        if done.unreadable > SHOWN:
            log.warning("%d more cannot be read: see the column 'error'.", done.unreadable - SHOWN)
        if done.inputs and done.unreadable == done.inputs:
            parts.remove()
            many = f"None of the {done.inputs} inputs can be read: "
            raise PrenError("input-unreadable", f"{many if done.inputs > 1 else ''}{done.first_error}")
        parts.finish(temporary)
    parts.remove()


def _digest(run: Path) -> str:
    """A hash of the model and its trust."""
    files = [run / name for name in (MODEL_FILE, TRUST_FILE) if (run / name).is_file()]
    return hashlib.sha256("".join(map(sha256, files)).encode()).hexdigest()
