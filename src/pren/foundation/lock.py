"""One writer per run folder.

The system holds the lock (`flock`) and drops it when the process ends, for any reason, so a dead process never blocks
a folder. The lock file says which process holds it, for the message that other processes show.

Why not the package filelock, which uses the same lock (4.2.10 was tried): it leaves the file behind, locks a named
pipe, does not notice that the file was removed (`is_locked` stays true while another process takes it), and without
`flock` it raises (ENOLCK, EOPNOTSUPP) or uses a file that a dead process leaves behind (ENOSYS). Version 3 empties the
file even when it does not get the lock. It would replace 20 lines here and need as many around it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
import stat
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pren.foundation.errors import PrenError

log = logging.getLogger(__name__)

LOCK = ".lock"
MOST_BYTES = 10_000


class Lock:
    """Holds a folder until `release`; `PrenError` if another process holds it or the folder cannot be written to."""

    def __init__(self, folder: Path, command: str = "") -> None:
        self._path = folder / LOCK
        while True:
            self._file = self._open()
            try:
                self._take()
                if self.held():  # the last holder may have removed the file meanwhile
                    break
            except BaseException:
                os.close(self._file)
                raise
            os.close(self._file)
        try:
            self._sign(command)
        except OSError as error:
            self.release()
            raise PrenError("write-failed", _cannot_write(folder, error)) from error

    def _open(self) -> int:
        """Open the lock file; refuse a link, a pipe or a device."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise PrenError("lock-odd", f"{self._path} is not an ordinary file: remove it.") from error
            raise PrenError("write-failed", _cannot_write(self._path.parent, error)) from error
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise PrenError("lock-odd", f"{self._path} is not an ordinary file: remove it.")
        return file

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PrenError("in-use", _in_use(self._path.parent, os.pread(self._file, MOST_BYTES, 0))) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                raise PrenError("write-failed", _cannot_write(self._path.parent, error)) from error
            log.warning("Cannot lock %s (%s): do not start a second run in its folder.", self._path, error.strerror)

    def _sign(self, command: str) -> None:
        last = _holder(os.pread(self._file, MOST_BYTES, 0))
        if last:
            log.info("Process %s on %s held %s and has ended.", last["pid"], last["host"], self._path.parent)
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "command": command,
        }
        os.truncate(self._file, 0)
        os.pwrite(self._file, json.dumps(holder).encode()[:MOST_BYTES], 0)

    def held(self) -> bool:
        """Whether the lock file is still in place; the folder may have been removed or renamed."""
        try:
            return os.path.samestat(os.fstat(self._file), self._path.lstat())
        except OSError:
            return False

    def release(self) -> None:
        """Let other processes use the folder."""
        try:
            if self.held():
                with suppress(OSError):  # the disk may be read-only by now; an unlocked file is harmless
                    self._path.unlink()
        finally:
            os.close(self._file)


def _cannot_write(folder: Path, error: OSError) -> str:
    return f"Cannot write in {folder}: {error.strerror}. Make room there, or choose another folder (copy a run first)."


def _holder(content: bytes) -> dict[str, Any] | None:
    """What the holder wrote about itself; None if the content is not in our format."""
    try:
        holder = json.loads(content)
        return {key: str(holder[key]) for key in ("pid", "host", "since", "command")}
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _in_use(folder: Path, content: bytes) -> str:
    holder = _holder(content)
    by = "another process"
    if holder:
        command = f" ({holder['command']})" if holder["command"] else ""
        by = f"process {holder['pid']} on {holder['host']}, since {holder['since']}{command}"
    return f"{folder} is in use by {by}: wait for it to end or stop it, or choose another folder with --out."
