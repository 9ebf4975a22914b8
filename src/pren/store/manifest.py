"""Checksums: files of a run that have changed are refused before they are used."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from pren.foundation.errors import PrenError
from pren.foundation.files import check_file, read_bytes, sha256, write_json
from pren.foundation.version import __version__

MANIFEST = "manifest.json"
FORMAT: Literal[3] = 3  # of run folders and their files
MOST_BYTES = 1 << 20
CHECKSUM_LINE = b"# sha256 of all lines above: "


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    bytes: int
    sha256: str


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: int
    version: str
    run: str
    files: dict[str, _File]


def write_manifest(folder: Path, names: Iterable[str], run: str) -> None:
    """Write sizes and checksums of files, and the id of their run, to their folder."""
    files = {}
    for name in names:
        check_file(folder / name)
        files[name] = _File(bytes=(folder / name).stat().st_size, sha256=sha256(folder / name))
    write_json(folder / MANIFEST, _Manifest(format=FORMAT, version=__version__, run=run, files=files).model_dump())


def verify(folder: Path, needed: Iterable[str], run: str) -> None:
    """Check the files of a folder against its manifest, which must list the needed ones and name the run."""
    try:
        manifest = _Manifest.model_validate_json(read_bytes(folder / MANIFEST, MOST_BYTES))
    except ValueError:
        raise PrenError("damaged", f"{folder / MANIFEST} is damaged.") from None
    check_format(manifest.format, folder / MANIFEST)
    if manifest.run != run:
        raise PrenError("other-run", f"{folder} belongs to another run (data or settings): restore the right one.")
    unlisted = sorted(set(needed) - set(manifest.files))
    if unlisted:
        raise PrenError("damaged", f"{folder / MANIFEST} is damaged: it does not list {', '.join(unlisted)}.")
    problems = [problem for name, file in manifest.files.items() if (problem := _compare(folder, name, file))]
    if problems:
        raise PrenError("damaged", " ".join(problems))


def _compare(folder: Path, name: str, file: _File) -> str | None:
    """What is wrong with a file; None if it is fine."""
    path = folder / name
    if Path(name).name != name:
        return f"{folder / MANIFEST} is damaged: {name!r} is not a file of this folder."
    try:
        check_file(path)
        if path.stat().st_size == file.bytes and sha256(path) == file.sha256:
            return None
    except PrenError as error:
        return str(error)
    except OSError as error:
        return f"Cannot read {path}: {error.strerror or error}."
    return f"{path} is damaged: its checksum differs."


def check_format(number: int, where: Path | str) -> None:
    """Refuse files of another format."""
    if number != FORMAT:
        raise PrenError(
            "format-other",
            f"{where} was written by another version of pren (format {number}, not {FORMAT}): fit again with the "
            "command in its config.yaml. Its model still works: copy model.safetensors to a folder of its own.",
        )


def with_checksum(text: bytes) -> bytes:
    """Text with a comment at its end that has its checksum."""
    return text + CHECKSUM_LINE + f"{hashlib.sha256(text).hexdigest()}\n".encode()


def checksum_holds(content: bytes) -> bool:
    """Whether content has the right checksum at its end."""
    text = content[: content.rfind(CHECKSUM_LINE)]
    return content == with_checksum(text)
