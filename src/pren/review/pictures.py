"""Photographs for the page: thumbnails that are made once and kept, and large ones to look closely."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

from pren.foundation.errors import PrenError
from pren.foundation.files import make_folder, write_bytes
from pren.images.decoding import read_image_file, shrunk, thumbnail
from pren.review.app import RefusedError

SIDE, LARGE = 224, 1600  # pixels; a thumbnail is shown at half its size, for dense screens
QUALITY = 80


class Pictures:
    """The photographs of one folder, by number: no request names a path.

    Args:
        folder: The folder that the names are relative to.
        names: Of the files.
        kept: Where thumbnails are kept.
    """

    def __init__(self, folder: Path, names: Sequence[str], kept: Path) -> None:
        self._folder, self._names, self._kept = folder, names, kept

    def thumbnail(self, place: int) -> bytes:
        """The middle of a photograph as a small square JPEG."""
        path = self._path(place)
        try:
            stamp = path.stat()
        except OSError as error:
            raise _unseen(self._names[place]) from error
        digest = hashlib.sha256(f"{path}\0{stamp.st_size}\0{stamp.st_mtime_ns}\0{SIDE}".encode("utf-8", "replace"))
        kept = self._kept / digest.hexdigest()[:2] / f"{digest.hexdigest()}.jpg"
        try:
            return kept.read_bytes()
        except OSError:
            content = self._made(place, large=False)
        try:
            make_folder(kept.parent)
            write_bytes(kept, content)
        except PrenError:  # a full disk: it is made again
            pass
        return content

    def large(self, place: int) -> bytes:
        """The whole photograph as a JPEG that fits a screen."""
        return self._made(place, large=True)

    def _path(self, place: int) -> Path:
        if not 0 <= place < len(self._names):
            raise RefusedError(404, "photograph-unknown", "There is no such photograph.")
        return self._folder / self._names[place]

    def _made(self, place: int, *, large: bool) -> bytes:
        path, out = self._path(place), io.BytesIO()
        try:
            content = read_image_file(path)
            image = shrunk(content, path, LARGE) if large else thumbnail(content, path, SIDE)
        except PrenError as error:
            raise _unseen(self._names[place]) from error
        image.save(out, "JPEG", quality=QUALITY)
        return out.getvalue()


def _unseen(name: str) -> RefusedError:
    return RefusedError(404, "input-unreadable", f"{name} cannot be read as an image.")
