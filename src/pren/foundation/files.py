"""Files that survive: writing that can be interrupted at any moment, and reading that nothing can surprise.

Everything is written to a temporary name first, brought to the disk and then renamed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pren.foundation.errors import PrenError

WRITING = ".writing-"  # how the names of unfinished files and folders begin
BLOCK = 1 << 20
ROWS = 4096  # of a table that are written at once
FORMULA = re.compile("'*[=+@＝＋－＠\\-\\t\\r\\n]")  # how what spreadsheets compute begins, apostrophes apart


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Hand out a temporary name for a file that becomes `path`, in place of what was there, once it is written."""
    temporary = path.with_name(f"{WRITING}{path.name}")
    with _explained(path):
        remove(temporary)  # it could be a link, and writing would go to wherever it leads
        try:
            yield temporary
            _flush(temporary)
            temporary.replace(path)
            _flush(path.parent)
        finally:
            with suppress(OSError):
                temporary.unlink()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Hand out a temporary folder that becomes `path` once everything in it is written; its parent must be there."""
    temporary = path.with_name(f"{WRITING}{path.name}")
    with _explained(path):
        remove(temporary)
        temporary.mkdir()
        try:
            yield temporary
            for part in sorted(temporary.rglob("*")):
                _flush(part)
            _flush(temporary)
            temporary.rename(path)
            _flush(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)  # a full disk needs the room
            raise


def check_is_text(path: str | Path) -> None:
    """Refuse a path whose bytes are no text: safetensors takes none."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise PrenError("not-text", f"{path} is not valid text (UTF-8): choose another name.") from error


def make_folder(path: Path) -> None:
    """Make a folder that may be there already, and those above it."""
    check_is_text(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrenError(
            "write-failed", f"Cannot make the folder {path}: {error.strerror or error}. Choose another one."
        ) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Put content in a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """Write JSON that a person can read."""
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table, some rows at a time."""
    rest = chain([header], rows)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        while some := list(islice(rest, ROWS)):
            file.write(csv_text(some))


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows of a table; text stands in quotes, so that a name may hold anything, and as `no_formula` has it."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerows([no_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue()


def no_formula(text: str) -> str:
    """Text for a table that no spreadsheet computes: what begins like a formula gets an apostrophe in front.

    What begins like that behind apostrophes gets one more, so that there is a way back: `from_cell`.
    """
    return f"'{text}" if FORMULA.match(text) else text


def from_cell(cell: str) -> str:
    """The text that `no_formula` made a cell of; any other text as it is."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def write_tensors(path: Path, tensors: Mapping[str, Any], metadata: dict[str, str] | None = None) -> None:
    """Write tensors as safetensors.

    `save_file` writes to a file of its own beside the one that it is given, under a name that nobody would find after a
    crash, and for its owner's eyes only. So it gets a folder, which is cleaned up as all unfinished work is.
    """
    from safetensors import SafetensorError  # late: the command line writes tables without waiting for torch
    from safetensors.torch import save_file

    dense = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    with replacing(path) as temporary:
        folder = temporary.with_name(f"{temporary.name}.folder")
        remove(folder)
        folder.mkdir()
        try:
            written = folder / path.name
            save_file(dense, written, metadata or None)  # of {} safetensors 0.8.0 makes a file that it cannot read
            written.chmod(folder.stat().st_mode & 0o666)
            written.replace(temporary)
            folder.rmdir()
        except SafetensorError as error:
            number = re.search(r"os error (\d+)", str(error))
            raise OSError(int(number[1]), os.strerror(int(number[1]))) if number else error from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def copy(source: Path, path: Path) -> None:
    """Make `path` a copy of `source`, replacing what was there; no link, so that damage to one leaves the other."""
    with replacing(path) as temporary:
        shutil.copyfile(source, temporary)


def remove(path: Path) -> None:
    """Remove whatever bears that name, if anything does: of a link itself, not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def read_bytes(path: Path, most: int) -> bytes:
    """Read an ordinary file of at most so many bytes.

    Raises:
        PrenError: If there is none, or it is larger, or something else that could make the reader wait for ever.
    """
    check_file(path)
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise PrenError("read-failed", f"Cannot read {path}: {error.strerror or error}.") from error
    if len(content) > most:
        raise PrenError("too-large", f"{path} is larger than {most} bytes: it is damaged or something else.")
    return content


def check_file(path: Path) -> None:
    """Refuse what is not an ordinary file: nothing at all, a folder, a link, a pipe, a device."""
    if path.is_symlink() or not path.is_file():
        what = "is not an ordinary file" if path.is_symlink() or path.exists() else "is missing"
        raise PrenError("file-odd", f"{path} {what}.")


def is_folder(path: str | Path) -> bool:
    """Whether there is such a folder; no name is too long or too odd to ask for."""
    return os.path.isdir(path)  # noqa: PTH112 - pathlib raises where this says no


def sha256(path: Path) -> str:
    """The checksum of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def check_links(folder: Path) -> None:
    """Refuse a folder with a link that leads out of it, or in a circle: reading or removing would go astray."""
    inside = folder.resolve()
    for parent, folders, files in os.walk(folder):  # which does not follow links to folders
        for path in (Path(parent, name) for name in folders + files):
            try:
                astray = path.is_symlink() and not path.resolve().is_relative_to(inside)
            except (OSError, RuntimeError) as error:  # until Python 3.12 a circle is a RuntimeError
                raise PrenError("link-loop", f"{path} is a link that leads to itself: remove it.") from error
            if astray:
                raise PrenError(
                    "link-outside",
                    f"{path} is a link that leads out of {folder}: remove it, or copy what it stands for.",
                )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PrenError("write-failed", f"Cannot write {path}: {error.strerror or error}.") from error


def _flush(path: Path) -> None:
    """Have the system put a file or the names in a folder on the disk, so that what follows cannot come first."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
