"""Writing that can be interrupted at any moment: to a temporary name first, then renamed."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pren.errors import PrenError

WRITING = ".writing-"  # how the names of unfinished files and folders begin


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Hand out a temporary name for a file that becomes `path`, in place of what was there, once it is written."""
    temporary = path.with_name(f"{WRITING}{path.name}")
    with _explained(path):
        try:
            yield temporary
            _flush(temporary)
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Hand out a temporary folder that becomes `path` once everything in it is written."""
    temporary = path.with_name(f"{WRITING}{path.name}")
    with _explained(path):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        for part in temporary.iterdir():
            _flush(part)
        temporary.rename(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Put content in a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """Write JSON that a person can read."""
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; text stands in quotes, so that a name may hold anything."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())


def link(source: Path, path: Path) -> None:
    """Make `path` the same file as `source` (a copy where the file system has no links), replacing what was there."""
    with replacing(path) as temporary:
        temporary.unlink(missing_ok=True)
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PrenError(f"Cannot write {path}: {error.strerror or error}.") from error


def _flush(path: Path) -> None:
    """Have the system put a file on the disk, so that the rename cannot come first."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
