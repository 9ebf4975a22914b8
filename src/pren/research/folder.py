"""The folder of an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pren.foundation.errors import PrenError
from pren.foundation.files import WRITING, check_links, make_folder, remove
from pren.foundation.lock import LOCK, Lock
from pren.store.folder import REPORT_FILE

CELLS = "cells"  # the folder with the results of a comparison
STUDY_FILE = "study.json"
SHEETS_FILE = "sheets.json"  # the tables of a reproduction


@contextmanager
def held_folder(path: Path, command: str = "") -> Iterator[None]:
    """Lock a folder that is new, empty, or holds only experiments against other writers."""
    make_folder(path)
    lock = Lock(path, command)
    try:
        if not _holds_experiments(path):
            raise PrenError("out-taken", f"{path} holds other files than experiments: choose another --out.")
        check_links(path)
        for unfinished in path.glob(f"{WRITING}*"):
            remove(unfinished)
        yield
    finally:
        lock.release()


def _holds_experiments(folder: Path) -> bool:
    """Whether a folder is empty, or holds an experiment, or only folders of experiments."""
    ours = {LOCK, REPORT_FILE}
    inside = [part for part in folder.iterdir() if part.name not in ours and not part.name.startswith(WRITING)]
    if {CELLS, STUDY_FILE, SHEETS_FILE} & {part.name for part in inside}:
        return True
    return all(part.is_dir() and not part.is_symlink() and _holds_experiments(part) for part in inside)
