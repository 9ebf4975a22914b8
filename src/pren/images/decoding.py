"""Image files, which may be anything, as images that all look alike to a backbone."""

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

# Pillow goes by content, not by name, and some of its formats (such as EPS) start other programs: these do not.
FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "TIFF", "GIF")
MOST_BYTES = 1 << 28
T = TypeVar("T")
MOST_READS = 1_000_000
LARGE_FILE = 1 << 25  # bytes
LARGE_PICTURE = 13_000_000  # pixels: a phone makes fewer, but for JPEG, which is decoded small
BAND = 1 << 22  # pixels that are brought to the right mode at once
# Few of them fill the memory, so all that decode in this process take turns.
TURNS: AbstractContextManager[Any] = threading.RLock()
UPRIGHT = {  # what to do to a picture whose EXIF says how the camera was held
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class _Content(io.BytesIO):
    """The content of a file, for so many reads: some of Pillow's formats go through rubbish byte by byte."""

    _reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self._reads += 1
        if self._reads > MOST_READS:
            raise ValueError("it is mostly rubbish")
        return super().read(size)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Decode without Pillow's warnings of odd metadata and large images.

    They can be silenced for the whole process only, so one thread does it for all that decode.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def image_file_size(path: Path) -> int:
    """How many bytes an image file has; a `PrenError` if it cannot be read, or is too large for one."""
    try:
        known = path.stat()
        if not stat.S_ISREG(known.st_mode):
            raise ValueError("it is no ordinary file")  # a pipe would be read for ever
        if known.st_size > MOST_BYTES:
            raise ValueError(f"it has {known.st_size} bytes, and image files at most {MOST_BYTES}")
        return known.st_size
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def read_image_file(path: Path) -> bytes:
    """The content of an image file; a `PrenError` if it cannot be read."""
    most = image_file_size(path)
    try:
        with path.open("rb") as file:
            return file.read(most)  # it may be growing
    except OSError as error:
        raise _unreadable(path, error) from error


@contextmanager
def in_turn(large: bool, turns: AbstractContextManager[Any] = TURNS) -> Iterator[None]:
    """To be held while something is decoded: alone, if it is large."""
    with turns if large else nullcontext():
        try:
            yield
        finally:
            if large:
                _give_back_memory()


def _give_back_memory() -> None:
    """Let the system have what was freed: glibc keeps it for the thread that had it, a picture's worth for each."""
    with suppress(OSError, AttributeError):  # no glibc
        ctypes.CDLL(None).malloc_trim(0)


def decode(
    content: bytes | Image.Image, path: Path, wanted: Preprocessing, turns: AbstractContextManager[Any] = TURNS
) -> Levels:
    """Turn the content of a file, or an image that Pillow has opened, into (C, H, W) levels from 0 to 255.

    Turned as the camera says (EXIF), transparent parts white, the first picture of an animation, 16 bits scaled to 8.
    Large pictures take `turns`.

    Raises:
        PrenError: If it is damaged, no image, or far too large. The message names the path.
        MemoryError: If it may be whole, but there is no room for it.
    """
    channels, height, width = wanted.sample_shape
    return _read(content, path, max(height, width), MODES[channels], wanted, turns)


def thumbnail(content: bytes | Image.Image, path: Path, side: int) -> Image.Image:
    """The middle of a picture as a square for people to look at; otherwise as `decode`."""
    return _read(content, path, side, "RGB", lambda image: ImageOps.fit(image, (side, side)), TURNS)


def _read(
    content: bytes | Image.Image,
    path: Path,
    side: int,
    mode: str,
    use: Callable[[Image.Image], T],
    turns: AbstractContextManager[Any],
) -> T:
    """Open a picture that will be brought to `side` pixels at most, set it right and use it."""
    try:
        if not content:
            raise ValueError("the file is empty")
        # Pillow refuses images that claim to be larger than any camera makes, though a file of a few bytes can.
        image = Image.open(_Content(content), formats=FORMATS) if isinstance(content, bytes) else content
        if isinstance(content, bytes) and image.format == "JPEG":
            # Decoding at a half, a quarter or an eighth is quick, and leaves more pixels than are needed, whichever way
            # the picture has to be turned: features stay within cosine 0.99 (python -m benchmarks decoding).
            image.draft(image.mode, (3 * side // 2,) * 2)
        with in_turn(image.width * image.height > LARGE_PICTURE, turns):
            image = _upright(image)  # by the same name, so that of a large one no copy stays
            image = _flat(image, mode)
            made = use(image)
            del image  # before it is another one's turn
        return made
    except MemoryError as error:
        raise MemoryError(f"for {path}") from error
    except UnidentifiedImageError as error:
        raise _unreadable(path, ValueError(f"cannot identify it as any of {', '.join(FORMATS)}")) from error
    # Damaged files make Pillow's decoders fail in many ways, none of them promised.
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> PrenError:
    reason = (str(error).splitlines() or [""])[0].replace(str(path), "the file") or type(error).__name__
    return PrenError(
        "input-unreadable", f"{path} cannot be read as an image ({reason}): mend it, or take it out of the folder."
    )


def _upright(image: Image.Image) -> Image.Image:
    """Turn a picture as the camera was held; one whose EXIF is damaged stays as it is.

    Not `ImageOps.exif_transpose`: that also writes the EXIF anew, and fails where some other part of it is odd.
    """
    image.load()  # some formats say it at their end, and TIFF turns by itself
    try:
        turn = UPRIGHT.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except MemoryError:
        raise
    except Exception:  # as for pixels, nothing is promised
        turn = None
    return image if turn is None else image.transpose(turn)


def _flat(image: Image.Image, mode: str) -> Image.Image:
    """Bring an image to a mode, a band at a time: on the way there are several copies."""
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
    """Bring grey images of more than 8 bits to 8, which Pillow would cut off at 255 instead of scaling."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError("nothing says which of its values is white")
    return image


def _opaque(image: Image.Image) -> Image.Image:
    """Put an image with transparent parts on white paper; what colour they have underneath means nothing."""
    if not image.has_transparency_data:
        return image
    layers = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layers.size, "white"), layers)
