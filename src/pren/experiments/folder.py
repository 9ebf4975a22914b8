"""A folder that an experiment keeps its results in, and goes on with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pren.errors import PrenError
from pren.files import WRITING, check_links, remove
from pren.runs.lock import LOCK, Lock


@contextmanager
def held_folder(path: Path, mark: str, command: str = "") -> Iterator[None]:
    """Hold a folder against other writers.

    Args:
        path: A folder that is new or empty, or that an experiment of the same kind was started in.
        mark: The file or folder that tells the latter.
        command: How this was started, for the message that others get.

    Raises:
        PrenError: If it holds something else, or somebody else writes in it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrenError(
            f"Cannot make the folder {path}: {error.strerror or error}. Choose another one with --out."
        ) from error
    lock = Lock(path, command)
    try:
        inside = [part for part in path.iterdir() if part.name != LOCK and not part.name.startswith(WRITING)]
        if inside and mark not in {part.name for part in inside}:
            raise PrenError(f"{path} holds something else (there is no {mark} in it): choose another with --out.")
        check_links(path)
        for unfinished in path.glob(f"{WRITING}*"):
            remove(unfinished)
        yield
    finally:
        lock.release()
