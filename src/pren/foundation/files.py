"""Write files so that an interruption never leaves half a file, and read only ordinary files of limited size.

Every file is written under a temporary name, flushed to the disk and then renamed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pren.foundation.errors import PrenError

WRITING = ".writing-"  # prefix of unfinished files and folders
WRITER = re.compile(r"\.(?P<machine>[0-9a-f]{6})-(?P<process>[0-9]{1,10})-[0-9a-f]{8}(\.folder)?")  # who writes one
LONGEST = 180  # bytes of a name that are kept in that of its unfinished file
BLOCK = 1 << 20
ROWS = 4096  # rows of a table that are written at once
FORMULA = re.compile("'*[=+@＝＋－＠\\-\\t\\r\\n]")  # the start of a spreadsheet formula, after any apostrophes


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it replaces `path` when the block ends."""
    with _explained(path):
        temporary = _unfinished(path)
        try:
            yield temporary
            _flush(temporary)
            temporary.replace(path)
            _flush(path.parent)
        finally:
            with suppress(OSError):
                temporary.unlink()


def _unfinished(path: Path) -> Path:
    """A name beside `path` that nothing has; what a process that is dead has left of `path` is removed.

    Several processes, also on several machines, may write the same file: the last one that is done wins.
    """
    name = path.name if len(os.fsencode(path.name)) <= LONGEST else hashlib.sha256(os.fsencode(path.name)).hexdigest()
    start = f"{WRITING}{name}"
    with os.scandir(path.parent) as entries:
        others = [entry.name for entry in entries if entry.name.startswith(start)]
    for other in others:
        if _is_left(other.removeprefix(start)):
            remove(path.with_name(other))
    return path.with_name(f"{start}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}")


def _is_left(end: str) -> bool:
    """Whether an unfinished file whose name ends so was left by a crash; other files that are written end otherwise."""
    if end in ("", ".folder"):  # as older versions named them
        return True
    writer = WRITER.fullmatch(end)
    if writer is None or writer["machine"] != _machine():
        return False
    try:
        os.kill(int(writer["process"]), 0)  # only asks
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


@cache
def _machine() -> str:
    return hashlib.sha256(platform.node().encode("utf-8", "replace")).hexdigest()[:6]


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder to fill; it becomes `path` when the block ends. The parent of `path` must exist."""
    with _explained(path):
        temporary = _unfinished(path)
        temporary.mkdir()
        try:
            yield temporary
            for part in sorted(temporary.rglob("*")):
                _flush(part)
            _flush(temporary)
            temporary.rename(path)
            _flush(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)  # frees room on a full disk
            raise


def check_is_text(path: str | Path) -> None:
    """Refuse a path that is not valid text, which safetensors cannot open."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise PrenError("not-text", f"{path} is not valid text (UTF-8): choose another name.") from error


def make_folder(path: Path) -> None:
    """Make a folder and its parents, unless they exist."""
    check_is_text(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"Cannot make the folder {path}: {error.strerror or error}. Choose another one."
        raise PrenError("write-failed", message) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """Write JSON that a person can read."""
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as CSV, some rows at a time."""
    rest = chain([header], rows)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        while some := list(islice(rest, ROWS)):
            file.write(csv_text(some))


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV; text is quoted and goes through `no_formula`."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerows([no_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue()


def no_formula(text: str) -> str:
    """Text that a spreadsheet does not run: text that begins like a formula gets an apostrophe in front.

    So does text that begins with apostrophes and a formula, so that `from_cell` can undo it.
    """
    return f"'{text}" if FORMULA.match(text) else text


def from_cell(cell: str) -> str:
    """The inverse of `no_formula`."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def write_tensors(path: Path, tensors: Mapping[str, Any], metadata: dict[str, str] | None = None) -> None:
    """Write tensors as safetensors.

    `save_file` first writes a file with a random name beside its target, readable by its owner only. It gets a folder
    of its own here, so that a crash leaves no file that we cannot find.
    """
    from safetensors import SafetensorError  # late, so that writing a table does not import torch
    from safetensors.torch import save_file

    dense = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    with replacing(path) as temporary:
        folder = temporary.with_name(f"{temporary.name}.folder")
        folder.mkdir()
        try:
            written = folder / path.name
            save_file(dense, written, metadata or None)  # safetensors 0.8.0 cannot read metadata {}
            written.chmod(folder.stat().st_mode & 0o666)
            written.replace(temporary)
            folder.rmdir()
        except SafetensorError as error:
            number = re.search(r"os error (\d+)", str(error))
            raise OSError(int(number[1]), os.strerror(int(number[1]))) if number else error from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def copy(source: Path, path: Path) -> None:
    """Replace `path` by a copy of `source`; not a link, so that damage to one does not damage the other."""
    with replacing(path) as temporary:
        shutil.copyfile(source, temporary)


def remove(path: Path) -> None:
    """Remove a file or folder if it exists; of a link, the link and not its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def read_bytes(path: Path, most: int) -> bytes:
    """Read an ordinary file of at most `most` bytes; `PrenError` if it is missing, larger, a pipe or a device."""
    check_file(path)
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise PrenError("read-failed", f"Cannot read {path}: {error.strerror or error}.") from error
    if len(content) > most:
        raise PrenError("too-large", f"{path} is larger than {most} bytes: it is damaged or not the right file.")
    return content


def check_file(path: Path) -> None:
    """Refuse a missing file, a folder, a link, a pipe or a device."""
    if path.is_symlink() or not path.is_file():
        what = "is not an ordinary file" if path.is_symlink() or path.exists() else "is missing"
        raise PrenError("file-odd", f"{path} {what}.")


def is_folder(path: str | Path) -> bool:
    """Whether the path is a folder; False for names that no file can have."""
    return os.path.isdir(path)  # noqa: PTH112 - pathlib raises for such names


def sha256(path: Path) -> str:
    """The checksum of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def check_links(folder: Path) -> None:
    """Refuse a folder with a link that leads out of it or to itself."""
    inside = folder.resolve()
    for parent, folders, files in os.walk(folder):  # does not follow links to folders
        for path in (Path(parent, name) for name in folders + files):
            try:
                outside = path.is_symlink() and not path.resolve().is_relative_to(inside)
            except (OSError, RuntimeError) as error:  # a loop is a RuntimeError until Python 3.12
                raise PrenError("link-loop", f"{path} is a link that leads to itself: remove it.") from error
            if outside:
                message = f"{path} is a link that leads out of {folder}: remove it, or replace it by a copy."
                raise PrenError("link-outside", message)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PrenError("write-failed", f"Cannot write {path}: {error.strerror or error}.") from error


def _flush(path: Path) -> None:
    """Write a file, or the names in a folder, to the disk before anything that follows."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
