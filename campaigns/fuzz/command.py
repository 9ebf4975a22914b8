"""The command line in this process, and what must hold after any outcome."""

from __future__ import annotations

import io
import logging
import os
import signal
import stat
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest import mock

from pren.cli import __main__ as command_line
from pren.methods.pren import PrEN
from pren.review import running

SECONDS = 60.0  # a longer case counts as a hang
MOST_WORK = 3_000  # heads x batches x (images in a batch), roughly; a valid run beyond would only cost time
SUCCESS, REFUSED, TOO_LARGE = "success", "PrenError", "too large to run"
Snapshot = dict[str, tuple[str, bytes]]


class TooLarge(BaseException):
    """A valid request for too much work; a class that no handler of pren catches."""


class Hang(BaseException):
    """Time is up."""


class Result(NamedTuple):
    """The outcome of a command."""

    code: int
    out: str
    err: str

    @property
    def outcome(self) -> str:
        """Its name in the table."""
        return SUCCESS if self.code == 0 else REFUSED


def pren(*arguments: str, may_report: bool = False) -> Result:
    """Run ``pren`` and check how it ended.

    Args:
        arguments: Of the command line.
        may_report: Whether a report may stand in the place of the one message, as ``pren data check`` has it.

    Returns:
        Code 0, or code 2 with one message.

    Raises:
        AssertionError: If it ended in another way, hung or let a warning out.
        Exception: Whatever escapes from pren: a defect.
        TooLarge: If it was asked, validly, for too much work.
    """
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")  # strict, as standard output is
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="\n")
    code = 0
    with (
        _surroundings(arguments),
        redirect_stdout(out),
        redirect_stderr(err),
        limited(),
        warnings.catch_warnings(record=True) as loose,
    ):
        warnings.simplefilter("always")
        try:
            command_line.main()
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        finally:
            logging.getLogger("pren").handlers.clear()  # they hold on to this case's standard error
    assert not loose, f"a warning got loose: {loose[0].category.__name__}: {loose[0].message}"
    result = Result(code, *(_text(stream) for stream in (out, err)))
    _check(result, may_report)
    return result


def snapshot(*paths: Path) -> Snapshot:
    """The files under some paths: kinds, modes and contents, links not followed."""
    found: Snapshot = {}
    for root in paths:
        for path in [root, *sorted(root.rglob("*"))] if root.is_dir() and not root.is_symlink() else [root]:
            mode = path.lstat().st_mode
            content = b""
            if stat.S_ISREG(mode):
                content = path.read_bytes()
            elif stat.S_ISLNK(mode):
                content = os.fsencode(path.readlink())
            found[str(path)] = (stat.filemode(mode), content)
    return found


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """The paths that two snapshots differ in."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _check(result: Result, may_report: bool) -> None:
    text = result.out + result.err
    assert result.code in (0, 2), f"exit code {result.code}: {result.err[-2000:]}"
    assert "Traceback" not in result.err, result.err[-2000:]
    assert all(character.isprintable() or character == "\n" for character in text), f"raw control characters: {text!r}"
    lines = result.err.splitlines()
    errors = [line for line in lines if line.startswith("Error")]
    if result.code == 2 and may_report and not errors:
        assert result.out or result.err.startswith("Usage:"), "no word of what is wrong"
    elif result.code == 2:
        assert len(errors) == 1, f"not one message but {len(errors)}: {result.err[:2000]!r}"
        assert lines[-1] == errors[0], f"the message is not the last line: {result.err[:2000]!r}"
        assert result.out == "", f"output beside a message: {result.out[:500]!r}"
    else:
        assert not errors, f"a message beside success: {errors[0]!r}"


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


@contextmanager
def _surroundings(arguments: tuple[str, ...]) -> Iterator[None]:
    """A window without colours, no waiting for the disk, no enormous run, and servers that stop at once."""
    begin = PrEN._begin

    def checked(self: PrEN, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        batches = self.initial_batches + self.rounds * (self.batches + 1)
        if self.heads * batches * self.batch_size > MOST_WORK or max((*self.hidden, 1)) * self.heads > MOST_WORK:
            raise TooLarge

    with (
        mock.patch.object(sys, "argv", ["pren", *arguments]),
        mock.patch.object(os, "fsync", return_value=None),
        mock.patch.object(PrEN, "_begin", checked),
        mock.patch.object(running, "run", lambda app, listening, on_start: on_start()),
        mock.patch("webbrowser.open"),
        mock.patch.dict(os.environ, {"COLUMNS": "250", "NO_COLOR": "1", "TERM": "dumb", "PREN_CACHE": "cache"}),
    ):
        yield


@contextmanager
def limited() -> Iterator[None]:
    """Turn a hang into a failure."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hang

    old = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    except Hang:
        raise AssertionError(f"pren hung: no end after {SECONDS:.0f} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
