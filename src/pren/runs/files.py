"""Writing that can be interrupted at any moment: to a temporary name first, then renamed."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pren.errors import PrenError

WRITING = ".writing-"  # how the names of unfinished files and folders begin


def write_bytes(path: Path, content: bytes) -> None:
    """Put content in a file, whole or not at all."""
    temporary = path.with_name(f"{WRITING}{path.name}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            _flush(file)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise PrenError(f"Cannot write {path}: {error.strerror or error}.") from error


def write_json(path: Path, content: Any) -> None:
    """Write JSON that a person can read."""
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Hand out a temporary folder that becomes `path` once everything in it is written."""
    temporary = path.with_name(f"{WRITING}{path.name}")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        for part in temporary.iterdir():
            with part.open("rb") as file:
                _flush(file)
        temporary.rename(path)
    except OSError as error:
        raise PrenError(f"Cannot write {path}: {error.strerror or error}.") from error


def link(source: Path, path: Path) -> None:
    """Make `path` the same file as `source` (a copy where the file system has no links), replacing what was there."""
    temporary = path.with_name(f"{WRITING}{path.name}")
    temporary.unlink(missing_ok=True)
    try:
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)
        temporary.replace(path)
    except OSError as error:
        raise PrenError(f"Cannot write {path}: {error.strerror or error}.") from error


def _flush(file: Any) -> None:
    """Have the system put a file on the disk, so that the rename cannot come first."""
    file.flush()
    os.fsync(file.fileno())
