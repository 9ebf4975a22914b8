"""Decode image files of any origin into images of one form for a backbone."""

from __future__ import annotations

import ctypes
import io
import stat
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from pren.foundation.errors import PrenError
from pren.images.preprocessing import MODES, Levels, Preprocessing

# Pillow goes by content, not by name, and some of its formats (such as EPS) start other programs. These do not.
FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "TIFF", "GIF")
MOST_BYTES = 1 << 28
T = TypeVar("T")
MOST_READS = 1_000_000
LARGE_FILE = 1 << 25  # bytes
LARGE_PICTURE = 13_000_000  # pixels: more than a phone makes, except in JPEG, which is decoded at a smaller size
BAND = 1 << 22  # pixels that are converted at once
# A few large images fill the memory, so the threads of this process decode them in turn.
TURNS: AbstractContextManager[Any] = threading.RLock()
STANDARD = 10  # the least number in the table of JPEG's standard, whose multiples most programs write
UPRIGHT = {  # by the orientation of the camera in the EXIF data
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class _Content(io.BytesIO):
    """The content of a file with a limited number of reads: Pillow reads some damaged files byte by byte."""

    _reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self._reads += 1
        if self._reads > MOST_READS:
            raise ValueError("it is damaged")
        return super().read(size)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silence Pillow's warnings of odd metadata and large images, for the whole process: call it in one thread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def image_file_size(path: Path) -> int:
    """The size of an image file in bytes; `PrenError` if it cannot be read or is too large."""
    try:
        known = path.stat()
        if not stat.S_ISREG(known.st_mode):
            raise ValueError("it is not an ordinary file")  # reading a pipe may never end
        if known.st_size > MOST_BYTES:
            raise ValueError(f"it has {known.st_size} bytes, more than {MOST_BYTES}")
        return known.st_size
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def read_image_file(path: Path) -> bytes:
    """The content of an image file; `PrenError` if it cannot be read."""
    most = image_file_size(path)
    try:
        with path.open("rb") as file:
            return file.read(most)  # it may be growing
    except OSError as error:
        raise _unreadable(path, error) from error


@contextmanager
def in_turn(large: bool, turns: AbstractContextManager[Any] = TURNS) -> Iterator[None]:
    """Hold this while an image is decoded; large ones take turns."""
    with turns if large else nullcontext():
        try:
            yield
        finally:
            if large:
                _give_back_memory()


def _give_back_memory() -> None:
    """Return freed memory to the system: glibc keeps the size of an image for each thread."""
    with suppress(OSError, AttributeError):  # without glibc
        ctypes.CDLL(None).malloc_trim(0)


def decode(
    content: bytes | Image.Image, path: Path, wanted: Preprocessing, turns: AbstractContextManager[Any] = TURNS
) -> Levels:
    """Turn the content of a file, or an image that Pillow has opened, into (C, H, W) levels from 0 to 255.

    Rotated as the camera says (EXIF), transparent parts white, the first frame of an animation, 16 bits scaled to 8.
    Large images take `turns`.

    Raises:
        PrenError: If it is damaged, not an image, or far too large. The message names the path.
        MemoryError: If there is not enough memory for it.
    """
    channels, height, width = wanted.sample_shape
    return _read(content, path, max(height, width), MODES[channels], wanted, turns)


def thumbnail(content: bytes | Image.Image, path: Path, side: int) -> Image.Image:
    """The middle of an image as a square, for people; otherwise like `decode`."""
    return _read(content, path, side, "RGB", lambda image: ImageOps.fit(image, (side, side)), TURNS)


def shrunk(content: bytes | Image.Image, path: Path, side: int) -> Image.Image:
    """A whole image that fits a square, for people; otherwise like `decode`."""

    def fitted(image: Image.Image) -> Image.Image:
        image.thumbnail((side, side))
        return image

    return _read(content, path, side, "RGB", fitted, TURNS)


def quality_of_file(content: bytes, path: Path) -> tuple[int, int]:
    """The longer side of an image file in pixels, and the quality that a JPEG was saved with, 100 for others.

    Raises:
        PrenError: If it is not an image.
    """
    try:
        image = Image.open(_Content(content), formats=FORMATS)
        tables = getattr(image, "quantization", None)
        if not tables:
            return max(image.size), 100
        scale = 100 * float(min(tables[min(tables)])) / STANDARD
    except Exception as error:  # undocumented, as for pixels
        raise _unreadable(path, error) from error
    return max(image.size), round(min(max(100 - scale / 2 if scale <= 100 else 5000 / scale, 1), 100))


def _read(
    content: bytes | Image.Image,
    path: Path,
    side: int,
    mode: str,
    use: Callable[[Image.Image], T],
    turns: AbstractContextManager[Any],
) -> T:
    """Open an image that is resized to at most `side` pixels, rotate and convert it, and apply `use`."""
    try:
        if not content:
            raise ValueError("the file is empty")
        # Pillow refuses images of more pixels than any camera makes, which a small file can claim.
        image = Image.open(_Content(content), formats=FORMATS) if isinstance(content, bytes) else content
        if isinstance(content, bytes) and image.format == "JPEG":
            # Decoding at a half, a quarter or an eighth is quick and keeps enough pixels for any rotation: features
            # stay within cosine 0.99 (python -m benchmarks decoding).
            image.draft(image.mode, (3 * side // 2,) * 2)
        with in_turn(image.width * image.height > LARGE_PICTURE, turns):
            image = _upright(image)  # the same name, so that no copy of a large image stays in memory
            image = _flat(image, mode)
            made = use(image)
            del image  # before the next turn
        return made
    except MemoryError as error:
        raise MemoryError(f"for {path}") from error
    except UnidentifiedImageError as error:
        raise _unreadable(path, ValueError(f"cannot identify it as any of {', '.join(FORMATS)}")) from error
    except Exception as error:  # damaged files make Pillow raise many undocumented exceptions
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> PrenError:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    reason = (said.splitlines() or [""])[0].replace(str(path), "the file") or type(error).__name__
    return PrenError("input-unreadable", f"{path} cannot be read as an image ({reason}): repair or remove it.")


def _upright(image: Image.Image) -> Image.Image:
    """Rotate an image as its EXIF says; damaged EXIF is ignored.

    `ImageOps.exif_transpose` also rewrites the EXIF, and fails if another part of it is damaged.
    """
    image.load()  # some formats have EXIF at their end, and TIFF rotates itself
    try:
        turn = UPRIGHT.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except MemoryError:
        raise
    except Exception:  # undocumented, as for pixels
        turn = None
    return image if turn is None else image.transpose(turn)


def _flat(image: Image.Image, mode: str) -> Image.Image:
    """Convert an image to a mode, in bands, because the conversion makes several copies."""
    rows = max(1, BAND // max(1, image.width))
    if image.height <= rows:
        return _opaque(_eight_bits(image)).convert(mode)
    if image.mode == mode and not image.has_transparency_data:
        return image
    flat = Image.new(mode, image.size)
    for top in range(0, image.height, rows):
        band = image.crop((0, top, image.width, min(top + rows, image.height)))
        flat.paste(_opaque(_eight_bits(band)).convert(mode), (0, top))
    return flat


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scale grey images of 16 bits to 8; Pillow would clip them at 255."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError("it does not say which value is white")
    return image


def _opaque(image: Image.Image) -> Image.Image:
    """Put an image with transparent parts on a white background."""
    if not image.has_transparency_data:
        return image
    layers = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layers.size, "white"), layers)
