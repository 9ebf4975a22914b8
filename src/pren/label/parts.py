"""Finished parts of a table, in a folder beside it: an interruption loses one part at most."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pren.foundation.errors import PrenError, reason
from pren.foundation.files import WRITING, read_bytes, write_bytes, write_json
from pren.foundation.lock import LOCK
from pren.label.predictions import Row

MANIFEST = "manifest.json"
FINISHED = "finished.json"
FAILED = "failed"
PART = "[0-9]*.jsonl"
FORMAT = 1
LONG, PAUSE = 3600.0, 0.2  # seconds
MOST_BYTES = 1 << 30


def was_finished(out: Path) -> bool:
    """Whether a table is complete, though removing its parts was interrupted; removes them then."""
    folder = parts_folder(out)
    try:
        left = sorted(path.name for path in folder.iterdir())
        if left and json.loads(read_bytes(folder / FINISHED, 1 << 10)) != _stamp(out):
            return False
        if not left and not out.is_file():  # the folder is removed last
            return False
    except (PrenError, OSError, ValueError, RecursionError):
        return False
    _remove(folder)
    return True


def parts_folder(out: Path) -> Path:
    """The folder with the parts of a table."""
    return out.with_name(f"{out.name}.parts")


class Parts:
    """The parts of one table, each written in one step.

    Args:
        out: The table.
        facts: What identifies the table, JSON-ready: parts of another one are refused.
    """

    def __init__(self, out: Path, facts: dict[str, Any]) -> None:
        self.out = out
        self.folder = parts_folder(out)
        self._facts = {"format": FORMAT, **facts}

    def make_folder(self) -> None:
        """Make the folder if there is none; a `PrenError` if it cannot be made."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise PrenError("write-failed", f"Cannot write {self.out}: {error.strerror or error}.") from error

    def claim(self) -> None:
        """Note which table the parts belong to; a `PrenError` if it is another one."""
        (self.folder / FAILED).unlink(missing_ok=True)
        if not (self.folder / MANIFEST).exists():
            if any(part.name != LOCK and not part.name.startswith(WRITING) for part in self.folder.iterdir()):
                raise PrenError("out-taken", f"{self.folder} has other files: choose another --out, or move them.")
            write_json(self.folder / MANIFEST, self._facts)
        self.check()

    def check(self) -> None:
        """Raise a `PrenError` if these are not the parts of this table."""
        path = self.folder / MANIFEST
        try:
            known = json.loads(read_bytes(path, 1 << 20))
            other = sorted(key for key in self._facts if known.get(key) != self._facts[key])
        except (ValueError, AttributeError, RecursionError):
            other = ["manifest"]
        if other:
            raise PrenError(
                "parts-other",
                f"{self.folder} has parts of another table (other {', '.join(other)}): repeat the earlier command, "
                "remove the folder, or choose another --out.",
            )

    @contextmanager
    def telling_others(self) -> Iterator[None]:
        """End the `wait` of other processes if this one fails."""
        try:
            yield
        except PrenError:
            with suppress(OSError):
                (self.folder / FAILED).touch()
            raise

    def wait(self, count: int) -> None:
        """Wait until all parts are there, a process has failed, or no part has come for long.

        A part may take longer than processes wait for a message of another.
        """
        number, last = 0, time.monotonic()
        while number < count and not (self.folder / FAILED).exists() and time.monotonic() - last < LONG:
            if self.has(number):
                number, last = number + 1, time.monotonic()
            else:
                time.sleep(PAUSE)

    def has(self, number: int) -> bool:
        """Whether a part is there."""
        return self._path(number).is_file()

    def any(self) -> bool:
        """Whether there is any part."""
        return any(self.folder.glob(PART))

    def write(self, number: int, rows: Iterable[Row]) -> None:
        """Write a part."""
        lines = (json.dumps(row.to_json(), ensure_ascii=False, allow_nan=False) for row in rows)
        write_bytes(self._path(number), "".join(f"{line}\n" for line in lines).encode())

    def read(self, sizes: Sequence[int]) -> Iterator[list[Row]]:
        """The rows of each part; `sizes` are their numbers."""
        for number, size in enumerate(sizes):
            path = self._path(number)
            try:
                rows = [
                    Row.from_json(json.loads(line)) for line in read_bytes(path, MOST_BYTES).decode().split("\n")[:-1]
                ]
                if len(rows) != size:
                    raise ValueError(f"it has {len(rows)} rows, not {size}")
                yield rows
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                raise PrenError(
                    "damaged", f"{path} is damaged ({reason(error)}): remove it and repeat the command."
                ) from error

    def finish(self, table: Path) -> None:
        """Note that this table, not yet renamed, has all parts."""
        write_json(self.folder / FINISHED, _stamp(table))

    def remove(self) -> None:
        """Remove all parts, and no other file."""
        _remove(self.folder)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:07d}.jsonl"


def _stamp(path: Path) -> list[int]:
    """What identifies a file after it is renamed."""
    known = path.stat()
    return [known.st_ino, known.st_size, known.st_mtime_ns]


def _remove(folder: Path) -> None:
    with suppress(OSError):  # the table is complete all the same
        # FINISHED comes last, as this may be interrupted, too.
        for pattern in (PART, f"{WRITING}*", MANIFEST, FAILED, LOCK, FINISHED):
            for part in folder.glob(pattern):
                part.unlink()
        folder.rmdir()
