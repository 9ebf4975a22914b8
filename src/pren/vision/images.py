"""Image files: as inputs that are decoded when they are asked for, and inputs written out as image files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from pren.errors import PrenError
from pren.inputs import Inputs
from pren.vision.decoding import decode, read_image_file, without_warnings
from pren.vision.preprocessing import MODES, Levels, Preprocessing, plain

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif")
USUAL = plain((3, 224, 224))  # until a backbone says what it wants
THREADS = min(8, os.cpu_count() or 1)  # Pillow decodes without Python's lock


class ImageFiles(Inputs):
    """Inputs over image files of one folder, decoded when they are asked for.

    Names are for whoever makes it; as part of a problem it hands out pixels only.

    Args:
        folder: Where the files are.
        names: The path of each file in that folder.
        preprocessing: What to bring them to. A backbone that wants something else asks for it with `prepared`.
    """

    def __init__(self, folder: str | Path, names: Sequence[str], preprocessing: Preprocessing = USUAL) -> None:
        self._folder = Path(folder)
        self._names = list(names)
        self._preprocessing = preprocessing

    def prepared(self, preprocessing: Preprocessing) -> ImageFiles:
        """The same files as another backbone wants them."""
        return ImageFiles(self._folder, self._names, preprocessing)

    def select(self, places: NDArray[np.int64]) -> ImageFiles:
        """Some of the files."""
        return ImageFiles(self._folder, [self._names[place] for place in places], self._preprocessing)

    @property
    def photographs(self) -> bool:
        """Yes."""
        return True

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(C, H, W)."""
        return self._preprocessing.sample_shape

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        """Return (n, C, H, W) float32 from 0 to 1."""
        levels = np.empty((len(indices), *self.sample_shape), dtype=np.uint8)
        with without_warnings(), ThreadPoolExecutor(THREADS) as threads:
            for place, image in enumerate(threads.map(self.levels, indices)):
                levels[place] = image
        return torch.from_numpy(levels).float().div_(255)

    def _path(self, place: int) -> Path:
        """Where a file is."""
        return self._folder / self._names[place]

    def content(self, place: int) -> bytes:
        """What is in a file."""
        return read_image_file(self._path(place))

    def levels(self, place: int, content: bytes | None = None) -> Levels:
        """One image as (C, H, W) levels from 0 to 255.

        Raises:
            PrenError: If it cannot be decoded.
        """
        content = self.content(place) if content is None else content
        return decode(content, self._path(place), self._preprocessing)

    def digest(self) -> bytes:
        """A hash of the files' content, in their order, and what they are brought to; not of their names."""
        content = hashlib.sha256(f"{self._preprocessing.model_dump_json()}{len(self)}".encode())
        for place in range(len(self)):
            content.update(hashlib.sha256(self.content(place)).digest())
        return content.digest()


class ImageFolder(ImageFiles):
    """All image files of a folder and its subfolders, sorted by path.

    Args:
        folder: Where the images are. A link that leads out of it is refused: it could name any file there is.
        preprocessing: What to bring them to.

    Raises:
        PrenError: If there are no images.
    """

    def __init__(self, folder: str | Path, preprocessing: Preprocessing = USUAL) -> None:
        super().__init__(folder, list_images(folder), preprocessing)
        if not len(self):
            raise PrenError(
                f"There are no images in {self._folder}: it needs files that end in {', '.join(EXTENSIONS)}."
            )

    @property
    def names(self) -> list[str]:
        """The path of each image, relative to the folder."""
        return list(self._names)


def image_files(inputs: Inputs) -> ImageFiles:
    """Inputs as the image files that they are.

    Raises:
        PrenError: If they are something else.
    """
    if not isinstance(inputs, ImageFiles):
        raise PrenError("A backbone turns photographs into features, but these data are no image files: leave it out.")
    return inputs


def list_images(folder: str | Path) -> list[str]:
    """The paths of the image files of a folder and its subfolders, relative to it and sorted.

    Raises:
        PrenError: If there is no such folder, or something in it pretends to be an image.
    """
    if not Path(folder).is_dir():
        raise PrenError(f"There is no folder {folder}: check the path.")
    names = []
    for path, is_image, fault in walk_images(Path(folder), Path(folder)):
        if fault is not None:
            raise PrenError(f"{path} {fault}")
        if is_image:
            names.append(path.relative_to(folder).as_posix())
    return sorted(names)


def save_images(inputs: Inputs, indices: NDArray[np.int64], folder: str | Path) -> list[Path]:
    """Write some inputs as image-0000.png, image-0001.png, ... in the order of `indices`.

    Args:
        inputs: Images (1 or 3, H, W) from 0 to 1; what is outside is cut off.
        indices: (n,) which of them.
        folder: Where to; made if it is not there.

    Returns:
        The paths of the files.

    Raises:
        PrenError: If the inputs are no such images, or the folder cannot be written to.
    """
    shape = inputs.sample_shape
    if len(shape) != 3 or shape[0] not in MODES:
        raise PrenError(f"Only inputs of shape (1 or 3, H, W) can be written as image files, not {shape}.")
    paths = [Path(folder) / f"image-{number:04d}.png" for number in range(len(indices))]
    levels = (inputs[indices].clamp(0, 1) * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, image in zip(paths, levels, strict=True):
            Image.fromarray(image[..., 0] if shape[0] == 1 else image).save(path)
    except OSError as error:
        raise PrenError(f"Images cannot be written to {folder} ({error}): choose another folder.") from error
    return paths


class Entry(NamedTuple):
    """What stands in a folder.

    Attributes:
        path: Where it is.
        is_image: Whether its name is that of an image; a folder may be called x.jpg too.
        fault: Why it cannot be read, to be said after its path; None if it can.
    """

    path: Path
    is_image: bool
    fault: str | None = None


def walk_images(folder: Path, within: Path) -> Iterator[Entry]:
    """All files in a folder and its subfolders, links to folders (which are not followed), and what is unreadable.

    Args:
        folder: Where to look.
        within: The folder that no link may lead out of.
    """
    closed: list[OSError] = []
    inside = within.resolve()
    for parent, folders, files in os.walk(folder, onerror=closed.append):  # follows no link, so it comes to an end
        for path in (Path(parent, name) for name in folders + files):
            try:
                entry = _entry(path, inside, within)
            except OSError as error:
                entry = Entry(path, False, f"cannot be read: {error.strerror or error}.")
            if entry is not None:
                yield entry
    for reason in closed:
        yield Entry(Path(reason.filename), False, f"cannot be read: {reason.strerror or reason}.")


def _entry(path: Path, inside: Path, within: Path) -> Entry | None:
    """What stands at a path; None for an ordinary folder."""
    is_link, is_folder = path.is_symlink(), path.is_dir()
    if is_folder and not is_link:
        return None
    is_image = path.suffix.lower() in EXTENSIONS and not is_folder
    fault = None
    if is_image and not path.is_file():
        what = "a dead link" if is_link else "a pipe or a device"  # which would be read for ever
        fault = f"is {what}, not an image: take it out of the folder."
    elif is_link and (is_image or is_folder) and not path.resolve().is_relative_to(inside):
        fault = f"is a link that leads out of {within}: copy what it stands for, or remove it."
    return Entry(path, is_image, fault)
