"""Python imports this at its start, where this folder is on its path: it counts what is written, and strikes.

Every call that changes a file in `PREN_STRIKE_WITHIN`, or sends something over the network, puts a byte into the file
`PREN_STRIKE_COUNT`, which all processes of a command share. At byte number `PREN_STRIKE_AT` this process is killed:
"before" the call, "after" it, or, of a write, when half of it is done. What was struck is noted in `PREN_STRIKE_COUNT`
+ ".struck". All this is looked up at every call: a process that is forked gets it after its imports.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from functools import wraps
from typing import Any

NAMES = ("fsync", "replace", "rename", "mkdir", "unlink", "remove", "rmdir", "ftruncate", "write")
write, rename = os.write, os.rename


def place(target: Any, dir_fd: int | None = None) -> str:
    """The path of a call; "" if it is not known."""
    if isinstance(target, socket.socket):
        return os.path.join(os.environ["PREN_STRIKE_WITHIN"], "answer") if target.family == socket.AF_INET else ""
    try:
        if isinstance(target, int):
            return os.readlink(f"/proc/self/fd/{target}")
        folder = os.getcwd() if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
        return os.path.join(folder, os.fsdecode(target))
    except OSError:
        return ""


def number() -> int:
    """Count a call; returns its number."""
    file = os.open(os.environ["PREN_STRIKE_COUNT"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        write(file, b".")
        return os.lseek(file, 0, os.SEEK_CUR)
    finally:
        os.close(file)


def strike(what: str) -> None:
    """Kill this process."""
    note = f"{os.environ['PREN_STRIKE_COUNT']}.struck"
    file = os.open(f"{note}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    write(file, what.encode(errors="replace"))
    os.close(file)
    rename(f"{note}.part", note)  # the campaign may kill this process as soon as it sees the note
    os.kill(os.getpid(), signal.SIGKILL)


def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, counted and maybe struck."""

    @wraps(call)
    def counted(target: Any, *rest: Any, **options: Any) -> Any:
        within = os.environ.get("PREN_STRIKE_WITHIN", "")
        path = place(target, options.get("dir_fd")) if within else ""
        if not within or not path.startswith(within) or number() != int(os.environ["PREN_STRIKE_AT"]):
            return call(target, *rest, **options)
        when, what = os.environ["PREN_STRIKE_WHEN"], f"{name} {os.path.relpath(path, within)}"
        if name in ("write", "send") and when == "after":
            call(target, rest[0][: len(rest[0]) // 2])
            strike(f"in the middle of {what}")
        try:
            return call(target, *rest, **options) if when == "after" else None
        finally:  # also if it has failed, as to remove what is not there
            strike(f"{when} {what}")

    return counted


for name in NAMES:
    setattr(os, name, watched(name, getattr(os, name)))
socket.socket.send = watched("send", socket.socket.send)  # type: ignore[method-assign]
