"""List the image files of a folder, without following links out of it."""

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
    for path, is_image, fault in walk_images(Path(folder), Path(folder)):
        if fault is not None:
            raise PrenError("file-odd", f"{path} {fault}")
        if is_image:
            names.append(path.relative_to(folder).as_posix())
    return sorted(names)


def walk_images(folder: Path, within: Path) -> Iterator[FolderEntry]:
    """All files in a folder and its subfolders, links to folders (not followed), and unreadable folders.

    A link that leads out of the folder `within` is a fault.
    """
    closed: list[OSError] = []
    inside = within.resolve()
    for parent, folders, files in os.walk(folder, onerror=closed.append):  # follows no links, so it ends
        entries = (_entry(Path(parent, name), inside, within) for name in folders + files)
        yield from filter(None, entries)
    for reason in closed:
        yield FolderEntry(Path(reason.filename), False, f"cannot be read: {reason.strerror or reason}.")


def _entry(path: Path, inside: Path, within: Path) -> FolderEntry | None:
    """The entry of a path; None for an ordinary folder."""
    is_image, fault = False, None
    try:
        is_link, is_folder = path.is_symlink(), path.is_dir()
        if is_folder and not is_link:
            return None
        is_image = path.suffix.lower() in EXTENSIONS and not is_folder  # a folder can be named x.jpg too
        if is_image and not path.is_file():
            what = "a pipe or a device" if path.exists() else "a dead link"  # reading a pipe may never end
            fault = f"is {what}, not an image: remove it."
        elif is_link and (is_image or is_folder) and not path.resolve().is_relative_to(inside):
            fault = f"is a link that leads out of {within}: replace it by a copy, or remove it."
    except OSError as error:
        fault = f"cannot be read: {error.strerror or error}."
    return FolderEntry(path, is_image, fault)
