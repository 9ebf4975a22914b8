"""List the image files of a folder, without following links out of it unless that is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pren.foundation.errors import PrenError

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif")


class FolderEntry(NamedTuple):
    """A file or link in a folder, whether its name is that of an image, and a fault to write after its path."""

    path: Path
    is_image: bool
    fault: str | None = None


def list_images(folder: str | Path) -> list[str]:
    """The paths of the image files of a folder and its subfolders, sorted; `PrenError` if one cannot be read."""
    if not Path(folder).is_dir():
        raise PrenError("file-missing", f"There is no folder {folder}: check the path.")
    names = []
    for path, is_image, fault in walk_images(Path(folder), Path(folder), "replace it by a copy, or remove it"):
        if fault is not None:
            raise PrenError("file-odd", f"{path} {fault}")
        if is_image:
            names.append(path.relative_to(folder).as_posix())
    return sorted(names)


def walk_images(folder: Path, within: Path, advice: str, follow: bool = False) -> Iterator[FolderEntry]:
    """All files in a folder and its subfolders, and unreadable folders.

    Args:
        folder: The folder.
        within: A link that leads out of this folder is a fault.
        advice: What to do about it, for its message.
        follow: Whether to follow all links instead. Otherwise links to folders are listed, but not followed.
    """
    closed: list[OSError] = []
    inside = None if follow else within.resolve()
    for parent, folders, files in os.walk(folder, onerror=closed.append, followlinks=follow):
        entries = [_entry(Path(parent, name), inside, f"out of {within}: {advice}") for name in folders + files]
        if follow:  # it would never end
            rings = [Path(parent, name) for name in folders if _leads_back(Path(parent, name))]
            folders[:] = [name for name in folders if Path(parent, name) not in rings]
            entries += [FolderEntry(ring, False, "is a link to a folder that it is in: remove it.") for ring in rings]
        yield from filter(None, entries)
    for reason in closed:
        yield FolderEntry(Path(reason.filename), False, f"cannot be read: {reason.strerror or reason}.")


def _leads_back(path: Path) -> bool:
    """Whether a path is a link to one of the folders on the way to it."""
    return path.is_symlink() and path.resolve() in {parent.resolve() for parent in path.parents}


def _entry(path: Path, inside: Path | None, leads_out: str) -> FolderEntry | None:
    """The entry of a path; None for an ordinary folder. Links may lead anywhere if `inside` is None."""
    is_image, fault = False, None
    try:
        is_link, is_folder = path.is_symlink(), path.is_dir()
        if is_folder and (inside is None or not is_link):
            return None
        is_image = path.suffix.lower() in EXTENSIONS and not is_folder  # a folder can be named x.jpg too
        if is_image and not path.is_file():
            what = "a pipe or a device" if path.exists() else "a dead link"  # reading a pipe may never end
            fault = f"is {what}, not an image: remove it."
        elif inside is None or not is_link or not (is_image or is_folder):
            pass
        elif not path.resolve().is_relative_to(inside):
            fault = f"is a link that leads {leads_out}."
    except OSError as error:
        fault = f"cannot be read: {error.strerror or error}."
    return FolderEntry(path, is_image, fault)
