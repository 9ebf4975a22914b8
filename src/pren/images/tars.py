"""Images in a ``.tar`` file (a shard, as WebDataset has them), read where they stand: nothing is ever unpacked."""

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
    """Where an image stands in a ``.tar`` file, or what is wrong with it."""

    tar: str
    name: str
    start: int
    size: int
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.tar}/{self.name}"

    def read(self) -> bytes:
        """Its content; a `PrenError` if it cannot be read."""
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
            raise PrenError(
                "input-unreadable", f"{self} cannot be read as an image ({reason(error)}): mend it, or leave it out."
            ) from error


def list_tar(path: str | Path) -> list[TarMember]:
    """The images of a ``.tar`` file, in its order; a `PrenError` if it is damaged, packed, or has none.

    What is named as an image but is no ordinary file (a link, a device), or has a name that leads elsewhere, is there
    with its fault.
    """
    found: list[TarMember] = []
    check_file(Path(path))
    try:
        with tarfile.open(path, "r:") as archive:
            whole, before = os.path.getsize(path), -1  # noqa: PTH202 - of the same name as tarfile has opened
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # or it would keep a million of them
                if not before < member.offset <= member.offset_data <= member.offset_data + member.size <= whole:
                    raise ValueError(f"{member.name!r} reaches beyond its end")
                before = member.offset
                if PurePosixPath(member.name).suffix.lower() in EXTENSIONS and not member.isdir():
                    found.append(TarMember(str(path), member.name, member.offset_data, member.size, _fault(member)))
            _check_end(Path(path), archive.offset)
    except (tarfile.TarError, OSError, ValueError, OverflowError, RecursionError) as error:
        what = f"{path} cannot be read as a .tar file ({reason(error)})"
        raise PrenError("tar-unreadable", f"{what}: make it anew, and unpack a compressed one (gunzip).") from error
    if not found:
        raise PrenError(
            "no-photographs", f"There are no images in {path}: it needs files that end in {', '.join(EXTENSIONS)}."
        )
    return found


def _fault(member: tarfile.TarInfo) -> str:
    if not member.isreg() or member.issparse():
        return "it is no ordinary file"
    if PurePosixPath(member.name).is_absolute() or ".." in PurePosixPath(member.name).parts:
        return "its name leads out of the .tar file"
    if member.size > MOST_BYTES:
        return f"it has {member.size} bytes, and image files at most {MOST_BYTES}"
    return ""


def _check_end(path: Path, place: int) -> None:
    """What follows the last member has to be zeros: at something that it cannot read, tarfile just stops."""
    with path.open("rb") as file:
        file.seek(place)
        if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise ValueError(f"it is damaged at byte {place}")
