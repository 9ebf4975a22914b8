"""A folder that an experiment keeps its results in, and goes on with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pren.foundation.errors import PrenError
from pren.foundation.files import WRITING, check_links, make_folder, remove
from pren.foundation.lock import LOCK, Lock
from pren.runs.store.folder import REPORT_FILE

CELLS = "cells"  # the folder that a comparison keeps its results in
STUDY_FILE = "study.json"  # the file that a study is kept in
SHEETS_FILE = "sheets.json"  # the file that a reproduction keeps its tables in


@contextmanager
def held_folder(path: Path, command: str = "") -> Iterator[None]:
    """Hold a folder that is new or empty, or holds nothing but experiments, against other writers.

    Raises:
        PrenError: If it holds something else, or somebody else writes in it: with what command, the lock says.
    """
    make_folder(path)
    lock = Lock(path, command)
    try:
        if not _holds_experiments(path):
            raise PrenError("out-taken", f"{path} holds something else than experiments: choose another with --out.")
        check_links(path)
        for unfinished in path.glob(f"{WRITING}*"):
            remove(unfinished)
        yield
    finally:
        lock.release()


def _holds_experiments(folder: Path) -> bool:
    """Whether all that is in a folder was written by an experiment there, or by some in its subfolders."""
    ours = {LOCK, REPORT_FILE}
    inside = [part for part in folder.iterdir() if part.name not in ours and not part.name.startswith(WRITING)]
    if {CELLS, STUDY_FILE, SHEETS_FILE} & {part.name for part in inside}:
        return True
    return all(part.is_dir() and not part.is_symlink() and _holds_experiments(part) for part in inside)
