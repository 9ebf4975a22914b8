"""Image files: a folder of them as inputs to predict, and inputs written out as image files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from pren.errors import PrenError
from pren.inputs import Inputs

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif")
# Pillow goes by content, not by name, and some of its formats (such as EPS) start other programs: these do not.
FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "TIFF", "GIF")
MODES = {1: "L", 3: "RGB"}


class ImageFolder:
    """Inputs over the image files of a folder and its subfolders, sorted by path and decoded when they are asked for.

    It is for prediction. A problem must not be built on it: file names and their order may give classes away.
    """

    def __init__(self, folder: str | Path, sample_shape: tuple[int, ...]) -> None:
        """List the image files.

        Args:
            folder: Where the images are. A link that leads out of it is refused: it could name any file there is.
            sample_shape: (C, H, W) to bring each image to: C is 1 (grey) or 3 (colour).

        Raises:
            PrenError: If there are no images, or they cannot be brought to that shape.
        """
        if len(sample_shape) != 3 or sample_shape[0] not in MODES or min(sample_shape) < 1:
            raise PrenError(
                f"Image files become (1 or 3, H, W) inputs, but inputs of shape {sample_shape} are asked for: "
                "give arrays instead."
            )
        self._folder = Path(folder)
        self._shape = sample_shape
        if not self._folder.is_dir():
            raise PrenError(f"There is no folder {self._folder}: check the path.")
        self._names = sorted(path.relative_to(self._folder).as_posix() for path in _image_files(self._folder))
        if not self._names:
            raise PrenError(
                f"There are no images in {self._folder}: it needs files that end in {', '.join(EXTENSIONS)}."
            )

    @property
    def names(self) -> list[str]:
        """The path of each image, relative to the folder."""
        return list(self._names)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(C, H, W)."""
        return self._shape

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        """Return (n, C, H, W) float32 from 0 to 1."""
        result = torch.empty((len(indices), *self._shape))
        for place, index in enumerate(indices):
            result[place] = self._decode(self._folder / self._names[index])
        return result

    def digest(self) -> bytes:
        """A hash of the files, their names and the shape they are brought to."""
        content = hashlib.sha256(f"{self._shape}".encode())
        for name in self._names:
            path = self._folder / name
            try:
                data = path.read_bytes()
            except OSError as error:
                raise _unreadable(path, error) from error
            content.update(f"{name}\0{len(data)}\0".encode())
            content.update(data)
        return content.digest()

    def _decode(self, path: Path) -> Tensor:
        channels, height, width = self._shape
        try:
            with Image.open(path, formats=FORMATS) as file:
                image = _eight_bits(file).convert(MODES[channels])
        # Damaged files make Pillow's decoders fail in many ways, none of them promised.
        except Exception as error:
            raise _unreadable(path, error) from error
        if image.size != (width, height):
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        levels = np.array(image, dtype=np.float32) / np.float32(255)
        return torch.from_numpy(levels.reshape(height, width, channels)).permute(2, 0, 1)


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


def _eight_bits(image: Image.Image) -> Image.Image:
    """Bring grey images of more than 8 bits to 8, which Pillow would cut off at 255 instead of scaling."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError("nothing says which of its values is white")
    return image


def _image_files(folder: Path) -> Iterator[Path]:
    inside = folder.resolve()
    for parent, folders, files in os.walk(folder):  # which does not follow links to folders, so it comes to an end
        for path in (Path(parent, name) for name in folders + files):
            is_image = path.suffix.lower() in EXTENSIONS and not path.is_dir()
            if is_image and not path.is_file():
                what = "a dead link" if path.is_symlink() else "a pipe or a device"  # which would be read for ever
                raise PrenError(f"{path} is {what}, not an image: take it out of the folder.")
            if path.is_symlink() and (is_image or path.is_dir()) and not path.resolve().is_relative_to(inside):
                raise PrenError(f"{path} is a link that leads out of {folder}: copy what it stands for, or remove it.")
            if is_image:
                yield path


def _unreadable(path: Path, error: Exception) -> PrenError:
    return PrenError(f"{path} cannot be read as an image ({error}): mend it, or take it out of the folder.")
