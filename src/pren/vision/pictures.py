"""Pictures as people hand them in: files, a folder, encoded bytes, or images that Pillow has opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pren.errors import PrenError
from pren.vision.decoding import decode, prepare, read_image_file, unreadable, without_warnings
from pren.vision.images import EXTENSIONS, THREADS, ImageFiles, list_images
from pren.vision.preprocessing import Levels, Preprocessing

KINDS = (str, os.PathLike, bytes, bytearray, Image.Image)


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures that are decoded when they are asked for.

    Attributes:
        names: What to call each of them.
        items: Where or what it is.
    """

    names: tuple[str, ...]
    items: tuple[Path | bytes | Image.Image, ...]

    @classmethod
    def of(cls, images: Any) -> Pictures | None:
        """Take one picture or several of any kind; a folder stands for the image files in it.

        Returns:
            None if these are no pictures.

        Raises:
            PrenError: If there is no such file, or a folder has no images.
        """
        alone = isinstance(images, KINDS)
        if not alone and not (isinstance(images, Sequence) and all(isinstance(image, KINDS) for image in images)):
            return None
        found: list[tuple[str, Path | bytes | Image.Image]] = []
        for number, image in enumerate([images] if alone else images):
            if isinstance(image, bytes | bytearray):
                found.append((str(number), bytes(image)))
            elif isinstance(image, Image.Image):
                found.append((str(number), image))
            elif Path(image).is_dir():
                found += _in_folder(Path(image), alone)
            elif os.path.lexists(image):
                found.append((str(image), Path(image)))
            else:
                raise PrenError(f"There is no file or folder {image}: check the path.")
        # A name on disk can be any bytes, but tables are UTF-8.
        names = tuple(name.encode("utf-8", "backslashreplace").decode() for name, _ in found)
        return cls(names, tuple(item for _, item in found))

    def __len__(self) -> int:
        return len(self.items)

    def files(self) -> ImageFiles | None:
        """The same as image files; None if some are in memory."""
        if not all(isinstance(item, Path) for item in self.items):
            return None
        return ImageFiles(Path(), [str(item) for item in self.items])

    def decoded(self, places: Sequence[int], wanted: Preprocessing) -> tuple[NDArray[np.uint8], list[str]]:
        """Decode some of them.

        Returns:
            (n, C, H, W) levels from 0 to 255 of those that can be decoded, and for each place why not: "" if it can.
        """
        with without_warnings(), ThreadPoolExecutor(THREADS) as threads:
            results = list(threads.map(lambda place: self._decoded(place, wanted), places))
        levels = [result for result in results if not isinstance(result, str)]
        stacked = np.stack(levels) if levels else np.empty((0, *wanted.sample_shape), dtype=np.uint8)
        return stacked, [result if isinstance(result, str) else "" for result in results]

    def _decoded(self, place: int, wanted: Preprocessing) -> Levels | str:
        item = self.items[place]
        where = item if isinstance(item, Path) else f"Picture {self.names[place]}"
        try:
            if isinstance(item, Image.Image):
                return prepare(item, wanted)
            return decode(read_image_file(item) if isinstance(item, Path) else item, where, wanted)
        except PrenError as error:
            return str(error)
        except Exception as error:  # Pillow promises nothing of damaged images
            return str(unreadable(where, error))


def _in_folder(folder: Path, alone: bool) -> list[tuple[str, Path]]:
    names = list_images(folder)
    if not names:
        raise PrenError(f"There are no images in {folder}: it needs files that end in {', '.join(EXTENSIONS)}.")
    return [(name if alone else str(folder / name), folder / name) for name in names]
