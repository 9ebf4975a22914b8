"""Image files as inputs that are decoded on demand, and inputs written as image files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from pren.foundation.errors import PrenError
from pren.images.decoding import (
    LARGE_FILE,
    TURNS,
    decode,
    image_file_size,
    in_turn,
    read_image_file,
    thumbnail,
    without_warnings,
)
from pren.images.folders import EXTENSIONS, list_images
from pren.images.preprocessing import MODES, Levels, Preprocessing, plain
from pren.images.tars import TarMember
from pren.problem.inputs import Inputs

USUAL = plain((3, 224, 224))  # until a backbone is chosen
THREADS = min(8, os.cpu_count() or 1)  # Pillow decodes without Python's lock
Item = str | TarMember | bytes | Image.Image


class Reading(NamedTuple):
    """An image file: the hash of its content, and (C, H, W) levels from 0 to 255 unless it is known, or an error."""

    key: bytes
    levels: Levels | None
    error: str = ""


class ImageFiles(Inputs):
    """Inputs over image files of one folder, decoded on demand. Methods see the pixels only, not the names.

    Args:
        folder: Where the files are.
        items: The path of each file in that folder, or a member of a ``.tar`` file, the bytes of a file, or an image
            that Pillow has opened.
        preprocessing: How they are decoded; `prepared` changes it for a backbone.
    """

    photographs = True

    def __init__(self, folder: str | Path, items: Sequence[Item], preprocessing: Preprocessing = USUAL) -> None:
        self._folder = Path(folder)
        self._items = list(items)
        self._preprocessing = preprocessing

    def prepared(self, preprocessing: Preprocessing) -> ImageFiles:
        """The same files with the preprocessing of a backbone."""
        return ImageFiles(self._folder, self._items, preprocessing)

    def select(self, places: NDArray[np.int64]) -> ImageFiles:
        """Some of the files."""
        return ImageFiles(self._folder, [self._items[place] for place in places], self._preprocessing)

    @property
    def on_disk(self) -> bool:
        """Whether all of them are files, none in memory."""
        return all(isinstance(item, str | TarMember) for item in self._items)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(C, H, W)."""
        return self._preprocessing.sample_shape

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        """Return (n, C, H, W) float32 from 0 to 1."""
        levels, errors = self.decoded(indices)
        for error in filter(None, errors):
            raise PrenError("input-unreadable", error)
        return levels.float().div_(255)

    def decoded(self, places: Iterable[int]) -> tuple[Tensor, list[str]]:
        """Decode some of them, in several threads.

        Returns:
            (n, C, H, W) levels from 0 to 255 of those that can be read, and for each place an error, "" if it has none.
        """
        with without_warnings(), ThreadPoolExecutor(THREADS) as threads:
            readings = list(threads.map(self.read, places))
        return stacked(readings, self.sample_shape), [reading.error for reading in readings]

    def read(
        self, place: int, known: Container[bytes] | None = None, turns: AbstractContextManager[Any] = TURNS
    ) -> Reading:
        """Read, hash and decode a file, unless its hash is in `known`; without `known` it is not hashed.

        Large files and images take `turns`.
        """
        item, path, key = self._items[place], self._path(place), b""
        try:
            with in_turn(_bytes_to_read(item, path) > LARGE_FILE, turns):
                content = _content(item, path)
                if known is not None and isinstance(content, bytes):
                    key = hashlib.sha256(content).digest()
                    if key in known:
                        return Reading(key, None)
                return Reading(key, decode(content, path, self._preprocessing, turns))
        except PrenError as error:
            return Reading(b"", None, str(error))

    def thumbnail(self, place: int, side: int) -> Image.Image | None:
        """A file as a small square, for people; None if it cannot be read."""
        item, path = self._items[place], self._path(place)
        try:
            with without_warnings():
                return thumbnail(_content(item, path), path, side)
        except (PrenError, MemoryError):
            return None

    def path(self, place: int) -> Path | None:
        """The path of a file; None for an item that is not a file of its own."""
        return self._path(place) if isinstance(self._items[place], str) else None

    def content(self, place: int) -> bytes:
        """The bytes of a file; `PrenError` if it cannot be read, or is an image that Pillow has opened."""
        content = _content(self._items[place], self._path(place))
        if not isinstance(content, bytes):
            raise PrenError("input-open", f"{self._path(place)} is an opened image, not a file: give its path.")
        return content

    def _path(self, place: int) -> Path:
        """The path of a file, or a name for messages."""
        item = self._items[place]
        if isinstance(item, TarMember):
            return Path(str(item))
        return self._folder / item if isinstance(item, str) else Path(f"Photograph {place}")

    def looks(self) -> bytes:
        """A hash of paths, sizes and times, to see without reading them whether files have changed."""
        known, tars = hashlib.sha256(), dict[str, str]()
        for place, item in enumerate(self._items):
            if isinstance(item, TarMember):
                if item.tar not in tars:
                    tars[item.tar] = _stamp(Path(item.tar))
                line = f"{item!r} {tars[item.tar]}"
            else:
                line = f"{self._path(place)} {_stamp(self._path(place))}" if isinstance(item, str) else f"{place}"
            known.update(f"{line}\n".encode("utf-8", "backslashreplace"))
        return known.digest()

    def digest(self) -> bytes:
        """A hash of the files' content, in their order, and of the preprocessing; not of their names."""
        content = hashlib.sha256(f"{self._preprocessing.model_dump_json()}{len(self)}".encode())
        for place in range(len(self)):
            content.update(hashlib.sha256(read_image_file(self._path(place))).digest())
        return content.digest()


class ImageFolder(ImageFiles):
    """All image files of a folder and its subfolders, sorted by path; `PrenError` if there are none.

    A link that leads out of the folder is refused, because it could lead to any file.
    """

    def __init__(self, folder: str | Path, preprocessing: Preprocessing = USUAL) -> None:
        self.names = list_images(folder)
        super().__init__(folder, self.names, preprocessing)
        if not self.names:
            message = f"There are no photographs in {folder}: add files that end in {', '.join(EXTENSIONS)}."
            raise PrenError("no-photographs", message)


def _bytes_to_read(item: Item, path: Path) -> int:
    if isinstance(item, TarMember):
        return item.size
    return image_file_size(path) if isinstance(item, str) else 0


def _content(item: Item, path: Path) -> bytes | Image.Image:
    if isinstance(item, TarMember):
        return item.read()
    return read_image_file(path) if isinstance(item, str) else item


def _stamp(path: Path) -> str:
    try:
        known = path.stat()
        return f"{known.st_size} {known.st_mtime_ns}"
    except (OSError, ValueError):
        return "missing"


def image_files(inputs: Inputs) -> ImageFiles:
    """Inputs as `ImageFiles`; `PrenError` if they are not photographs."""
    if not isinstance(inputs, ImageFiles):
        raise PrenError("no-photographs", "A backbone needs photographs, and these data have none: leave it out.")
    return inputs


def stacked(readings: Iterable[Reading], shape: tuple[int, ...]) -> Tensor:
    """(n, *shape) levels of the readings that have them."""
    levels = [reading.levels for reading in readings if reading.levels is not None]
    return torch.from_numpy(np.array(levels, dtype=np.uint8).reshape(-1, *shape))


def save_images(inputs: Inputs, indices: NDArray[np.int64], folder: str | Path) -> list[Path]:
    """Write some inputs, (1 or 3, H, W) from 0 to 1, as image-0000.png, ... in the order of `indices`."""
    shape = inputs.sample_shape
    if len(shape) != 3 or shape[0] not in MODES:
        raise PrenError("inputs-shape", f"Image files need inputs of shape (1 or 3, H, W), not {shape}.")
    paths = [Path(folder) / f"image-{number:04d}.png" for number in range(len(indices))]
    levels = (inputs[indices].clamp(0, 1) * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, image in zip(paths, levels, strict=True):
            Image.fromarray(image[..., 0] if shape[0] == 1 else image).save(path)
    except OSError as error:
        raise PrenError("write-failed", f"Cannot write images to {folder} ({error}): choose another folder.") from error
    return paths
