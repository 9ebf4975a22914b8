"""What stands in a folder of images, wherever its links lead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pren.foundation.errors import PrenError

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif")


class FolderEntry(NamedTuple):
    """What stands in a folder: whether it is named as an image, and what is wrong, to be said after its path."""

    path: Path
    is_image: bool
    fault: str | None = None


def list_images(folder: str | Path) -> list[str]:
    """The paths of the image files of a folder and its subfolders, sorted; a `PrenError` if one cannot be read."""
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
    """All files in a folder and its subfolders, links to folders (which are not followed), and what is unreadable.

    No link may lead out of the folder `within`.
    """
    closed: list[OSError] = []
    inside = within.resolve()
    for parent, folders, files in os.walk(folder, onerror=closed.append):  # follows no link, so it comes to an end
        entries = (_entry(Path(parent, name), inside, within) for name in folders + files)
        yield from filter(None, entries)
    for reason in closed:
        yield FolderEntry(Path(reason.filename), False, f"cannot be read: {reason.strerror or reason}.")


def _entry(path: Path, inside: Path, within: Path) -> FolderEntry | None:
    """What stands at a path; None for an ordinary folder."""
    is_image, fault = False, None
    try:
        is_link, is_folder = path.is_symlink(), path.is_dir()
        if is_folder and not is_link:
            return None
        is_image = path.suffix.lower() in EXTENSIONS and not is_folder  # a folder may be called x.jpg too
        if is_image and not path.is_file():
            what = "a pipe or a device" if path.exists() else "a dead link"  # the former would be read for ever
            fault = f"is {what}, not an image: take it out of the folder."
        elif is_link and (is_image or is_folder) and not path.resolve().is_relative_to(inside):
            fault = f"is a link that leads out of {within}: copy what it stands for, or remove it."
    except OSError as error:
        fault = f"cannot be read: {error.strerror or error}."
    return FolderEntry(path, is_image, fault)
