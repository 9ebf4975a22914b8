"""Mutated photographs of every format: each is decoded or refused, in bounded time and memory.

Guided by coverage: what goes from one line of Pillow or of ours to another as nothing has before is spoiled further.
"""

from __future__ import annotations

import io
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from PIL import ExifTags, Image

from campaigns.fuzz.command import REFUSED, SUCCESS, limited
from campaigns.fuzz.engine import Report
from campaigns.fuzz.mutations import ByteEdit
from pren.foundation.errors import PrenError
from pren.images.decoding import decode, without_warnings
from pren.images.preprocessing import plain

WANTED = (plain((3, 20, 30)), plain((1, 8, 8)))
FOLLOWED = ("PIL", "vision")  # folders whose lines are counted
LARGEST = 20_000  # bytes of files that are changed further
CHANCES = {"flip": 0.4, "overwrite": 0.3, "insert": 0.1, "delete": 0.1, "duplicate": 0.05, "truncate": 0.05}
ODD = (b"\0", b"\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\x01\0\0\0", b"\0\x01")

Arcs = set[tuple[str, int, int]]  # a file, a line, and the one before it in the same call


@cache
def corpus() -> tuple[bytes, ...]:
    """Small photographs of every format and mode."""
    y, x = np.mgrid[0:24, 0:31]
    colour = Image.fromarray(np.stack([8 * x, 10 * y, 5 * (x + y) % 256], axis=2).astype(np.uint8))
    grey, palette, clear = colour.convert("L"), colour.quantize(16), colour.copy()
    clear.putalpha(grey)
    deep, turned = Image.fromarray((x * y * 80).astype(np.uint16)), Image.Exif()
    turned[ExifTags.Base.Orientation] = 6
    written = [
        *((image, "PNG", {}) for image in (colour, grey, palette, clear, clear.convert("LA"), grey.convert("1"), deep)),
        *((palette, form, {"transparency": 3}) for form in ("PNG", "GIF")),
        (colour, "PNG", {"exif": turned, "dpi": (72, 72)}),
        *((image, "JPEG", {}) for image in (colour, grey, colour.convert("CMYK"))),
        (colour, "JPEG", {"progressive": True, "exif": turned, "icc_profile": bytes(200), "comment": b"x" * 30}),
        *((image, "BMP", {}) for image in (colour, grey, palette, clear, grey.convert("1"))),
        *((image, "WEBP", {"lossless": lossless}) for image in (colour, clear) for lossless in (False, True)),
        *(
            (colour, "TIFF", {"compression": how})
            for how in (None, "tiff_lzw", "jpeg", "packbits", "tiff_adobe_deflate")
        ),
        *((image, "TIFF", {}) for image in (clear, palette, deep, grey.convert("1"), colour.convert("CMYK"))),
        *((grey.convert("1"), "TIFF", {"compression": how}) for how in ("group3", "group4")),
        *((palette, form, {"save_all": True, "append_images": [palette] * 2}) for form in ("GIF", "TIFF")),
        *((colour, form, {"save_all": True, "append_images": [colour] * 2}) for form in ("PNG", "WEBP")),
    ]
    contents = []
    for image, form, options in written:
        file = io.BytesIO()
        image.save(file, form, **{key: value for key, value in options.items() if value is not None})  # type: ignore[attr-defined]
        contents.append(file.getvalue())
    return tuple(contents)


@dataclass(frozen=True)
class Picture:
    """An image file, maybe damaged.

    Attributes:
        content: Its bytes.
        grey: Whether it is read as a grey one.
    """

    content: bytes
    grey: bool = False

    def __repr__(self) -> str:
        return f"Picture(bytes.fromhex({self.content.hex()!r}), {self.grey})"


def check(case: Picture) -> tuple[str, Arcs]:
    """Decode; returns the outcome, and which arcs that has taken."""
    reached: Arcs = set()
    wanted = WANTED[case.grey]
    with without_warnings(), limited(), following(reached):
        try:
            levels = decode(case.content, Path("picture"), wanted)
        except PrenError:
            return REFUSED, reached
    assert levels.shape == wanted.sample_shape
    assert levels.dtype == np.uint8
    return SUCCESS, reached


def run(cases: int, seed: int, seconds: float | None = None, guided: bool = True) -> tuple[Report, Arcs]:
    """Try photographs until one fails or time is up.

    Args:
        cases: How many.
        seed: The same seed gives the same pictures.
        seconds: When to stop early.
        guided: Whether what takes a new arc is spoiled further; if not, it is always the first corpus.

    Returns:
        What became of them, and the arcs that they have taken.
    """
    rng, report, reached = np.random.default_rng(seed), Report(), Arcs()
    pictures, began = list(corpus()), time.perf_counter()
    for content in pictures:  # whole, and so that modules are imported
        reached |= check(Picture(content))[1]
    for _ in range(cases):
        if seconds is not None and time.perf_counter() - began > seconds:
            break
        case = Picture(_spoiled(pictures, rng), bool(rng.integers(2)))
        try:
            outcome, arcs = check(case)
        except Exception as error:  # any error of a case is a finding
            report.failure = f"{case!r}\n{traceback.format_exc(limit=-6)}{type(error).__name__}: {error}"
            report.repeat = f"--only pictures --cases {cases} --seed {seed}"
            break
        report.outcomes[outcome] += 1
        if guided and not arcs <= reached and len(case.content) < LARGEST:
            pictures.append(case.content)
        reached |= arcs
    report.seconds = time.perf_counter() - began
    return report, reached


def _spoiled(pictures: list[bytes], rng: np.random.Generator) -> bytes:
    """One of them, or the beginning of one and the end of another, with some bytes changed."""
    content, other = pictures[int(rng.integers(len(pictures)))], pictures[int(rng.integers(len(pictures)))]
    if rng.random() < 0.2:
        place = int(rng.integers(len(content) + 1))
        content = content[:place] + other[place:]
    for _ in range(int(rng.integers(1, 6))):
        kind = str(rng.choice(list(CHANCES), p=list(CHANCES.values())))
        data: bytes = rng.bytes(int(rng.integers(1, 5))) if rng.random() < 0.5 else ODD[int(rng.integers(len(ODD)))]
        # Headers are at the beginning, and say more.
        at = int(rng.integers(len(content) + 1) * (rng.random() ** 2))
        content = ByteEdit(kind, at, int(rng.integers(1, 40)), int(rng.integers(8)), data).apply(content)
    return content


@contextmanager
def following(reached: Arcs) -> Iterator[None]:
    """Note how Pillow and we go from line to line in this thread."""

    def call(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        file, last = frame.f_code.co_filename, 0

        def line(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
            nonlocal last
            if event == "line":
                reached.add((file, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line if Path(file).parent.name in FOLLOWED else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)
