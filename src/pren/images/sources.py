"""Open photographs in every form that users give: files, folders, lists, shards, encoded bytes, Pillow images."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pren.foundation.errors import PrenError, quoted, reason
from pren.foundation.files import from_cell, read_bytes
from pren.images.files import ImageFiles, ImageFolder, Item
from pren.images.tars import list_tar

MOST_BYTES = 1 << 30  # of a list
Named = tuple[str, Item]


def open_pictures(images: Any, column: str | None = None) -> tuple[list[str], ImageFiles] | None:
    """Open one or several photographs.

    Args:
        images: Paths (of image files, of folders, of ``.tar`` files, of ``.txt`` files with a path on each line), the
            bytes of encoded images, Pillow images, (H, W, 3) arrays of levels from 0 to 255 (uint8).
        column: The column of ``.csv`` files that lists paths.

    Returns:
        The name of each (its path, or its place if it is in memory), and the files; None if `images` has another form.

    Raises:
        PrenError: If there is no such file, or a folder, a list or a shard has no photographs.
    """
    alone = _is_photograph(images)
    if not alone and not (isinstance(images, Sequence) and all(map(_is_photograph, images))):
        return None
    found: list[Named] = []
    for image in [images] if alone else images:
        if isinstance(image, str | os.PathLike):
            found += _at(Path(image), str(image), alone, column)
        else:
            found.append((str(len(found)), _in_memory(image)))
    # File names can be any bytes, but tables are UTF-8.
    names = [name.encode("utf-8", "backslashreplace").decode() for name, _ in found]
    return names, ImageFiles("", [item for _, item in found])


def _is_photograph(image: Any) -> bool:
    if isinstance(image, np.ndarray):
        return image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] in (3, 4)
    return isinstance(image, str | os.PathLike | bytes | bytearray | Image.Image)


def _in_memory(image: Any) -> bytes | Image.Image:
    if isinstance(image, np.ndarray):
        return Image.fromarray(image)
    return bytes(image) if isinstance(image, bytearray) else image


def _at(path: Path, given: str, alone: bool, column: str | None) -> Iterator[Named]:
    """The photographs at a path; if it is the only path, their names are relative to it."""
    kind = path.suffix.lower()
    if path.is_dir():
        for name in ImageFolder(path).names:
            yield name if alone else str(path / name), str(path / name)
    elif not os.path.lexists(path):
        raise PrenError("file-missing", f"There is no file or folder {given}: check the path.")
    elif kind == ".tar":
        for member in list_tar(path):
            yield member.name if alone else str(member), member
    elif kind in (".txt", ".csv"):
        listed = _listed(path, column if kind == ".csv" else None)
        if not any(os.path.lexists(path.parent / name) for name in listed):
            raise PrenError(
                "list-no-files",
                f"{path} is read as a list of paths, relative to its folder, but none of its {len(listed)} lines "
                f"is one of a file. The first is {quoted(listed[0])}.",
            )
        for name in listed:
            yield name, str(path.parent / name)
    else:
        yield given, given


def _listed(path: Path, column: str | None) -> list[str]:
    """The paths in a list, relative to its folder."""
    content = read_bytes(path, MOST_BYTES)
    if path.suffix.lower() == ".txt":
        lines = (line.rstrip(b"\r") for line in content.split(b"\n"))
        names = [os.fsdecode(line) for line in lines if line.strip()]
    else:
        names = _column(path, content, column)
    if not names:
        raise PrenError("list-empty", f"{path} lists no files: write one path per line.")
    if any("\0" in name for name in names):
        raise PrenError("list-binary", f"{path} is not a list of files: it holds zero bytes.")
    return names


def _column(path: Path, content: bytes, column: str | None) -> list[str]:
    try:
        table = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        header = list(table.fieldnames or ())
        if column not in header:
            which = "" if column is None else f"{path} has no column {column!r}. "
            message = f"{which}Name the column of {path} with the paths (--column NAME): {', '.join(header)}."
            raise PrenError("column-unknown", message)
        return [from_cell(row[column]) for row in table if row[column]]
    except (ValueError, csv.Error) as error:
        raise PrenError("list-unreadable", f"{path} cannot be read as a table in UTF-8: {reason(error)}.") from error
