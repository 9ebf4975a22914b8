"""Photographs in a ``.tar`` file (a shard, as in WebDataset), read in place: nothing is unpacked."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pren.foundation.errors import PrenError, reason
from pren.foundation.files import check_file
from pren.images.decoding import MOST_BYTES
from pren.images.folders import EXTENSIONS


class TarMember(NamedTuple):
    """The position of an image in a ``.tar`` file, or its fault."""

    tar: str
    name: str
    start: int
    size: int
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.tar}/{self.name}"

    def read(self) -> bytes:
        """Its content; `PrenError` if it cannot be read."""
        try:
            if self.fault:
                raise ValueError(self.fault)
            with Path(self.tar).open("rb") as file:
                file.seek(self.start)
                content = file.read(self.size)
            if len(content) < self.size:
                raise ValueError(f"it ends after {len(content)} of {self.size} bytes")
            return content
        except (OSError, ValueError) as error:
            message = f"{self} cannot be read as an image ({reason(error)}): repair or remove it."
            raise PrenError("input-unreadable", message) from error


def list_tar(path: str | Path) -> list[TarMember]:
    """The images of a ``.tar`` file, in its order; `PrenError` if it is damaged, compressed, or has none.

    An image that is not an ordinary file (a link, a device), or whose name leads out of the file, has a fault.
    """
    found: list[TarMember] = []
    check_file(Path(path))
    try:
        with tarfile.open(path, "r:") as archive:
            whole, before = os.path.getsize(path), -1  # noqa: PTH202 - of the same name as tarfile has opened
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # or it would keep all of them in memory
                if not before < member.offset <= member.offset_data <= member.offset_data + member.size <= whole:
                    raise ValueError(f"{member.name!r} reaches beyond its end")
                before = member.offset
                if PurePosixPath(member.name).suffix.lower() in EXTENSIONS and not member.isdir():
                    found.append(TarMember(str(path), member.name, member.offset_data, member.size, _fault(member)))
            _check_end(Path(path), archive.offset)
    except (tarfile.TarError, OSError, ValueError, OverflowError, RecursionError) as error:
        what = f"{path} cannot be read as a .tar file ({reason(error)})"
        raise PrenError("tar-unreadable", f"{what}: write it again, without compression (gunzip).") from error
    if not found:
        message = f"There are no photographs in {path}: add files that end in {', '.join(EXTENSIONS)}."
        raise PrenError("no-photographs", message)
    return found


def _fault(member: tarfile.TarInfo) -> str:
    if not member.isreg() or member.issparse():
        return "it is not an ordinary file"
    if PurePosixPath(member.name).is_absolute() or ".." in PurePosixPath(member.name).parts:
        return "its name leads out of the .tar file"
    if member.size > MOST_BYTES:
        return f"it has {member.size} bytes, more than {MOST_BYTES}"
    return ""


def _check_end(path: Path, place: int) -> None:
    """Zeros must follow the last member: tarfile silently stops at a header that it cannot read."""
    with path.open("rb") as file:
        file.seek(place)
        if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise ValueError(f"it is damaged at byte {place}")
