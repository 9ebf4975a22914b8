"""Whether a MATLAB file of version 5 to 7 is sound enough to be handed to scipy.

scipy (1.17 at least) looks an element's type up in a table without checking it, so a single damaged byte can end the
process (scipy's pull request 25829). Here the tags of the variables that are wanted are followed first. Only what data
files need is let through: real numbers, text, and cells that hold either.

A file is a header of 128 bytes, then elements. An element is a tag (type and number of bytes), then that many bytes.
A variable is an element of the type MATRIX, maybe compressed, whose bytes are again elements: flags, sizes, a name, and
then numbers, characters or, for cells, a MATRIX each.
"""

from __future__ import annotations

import math
import mmap
import struct
import zlib
from collections.abc import Collection
from pathlib import Path

HEADER = 128
BLOCK = 1 << 16

# Types of elements.
INT8, INT32, UINT32, MATRIX, COMPRESSED = 1, 5, 6, 14, 15
NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13}
TEXT = {16, 17, 18}  # UTF-8, UTF-16, UTF-32

# Classes of variables.
CELL, CHARACTERS = 1, 4
NUMERIC = range(6, 16)  # from double to uint64
COMPLEX_FLAG = 1 << 11


def check_tags(path: Path, wanted: Collection[str]) -> None:
    """Follow the tags of some variables.

    Args:
        path: A file; one of another version is left to scipy, which reads (4) or refuses (7.3) it safely.
        wanted: The variables that are going to be read.

    Raises:
        ValueError: If a tag leads nowhere, or a variable stands twice or is of a kind that is not let through.
    """
    with path.open("rb") as file:
        header = file.read(HEADER)
        if len(header) < HEADER or 0 in header[:4]:  # nothing, or version 4
            return
        order = "<" if header[126:128] == b"IM" else ">"
        if header[125 if order == "<" else 124] != 1:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            place, found = HEADER, set[str]()
            while place + 8 <= len(content):
                kind, size = struct.unpack(f"{order}II", content[place : place + 8])
                place += 8
                if kind not in (MATRIX, COMPRESSED) or size > len(content) - place:
                    raise ValueError(f"an element at byte {place - 8} is none or does not end")
                stream = _Stream(content, place, place + size, order, compressed=kind == COMPRESSED)
                if kind == COMPRESSED and stream.tag()[0] != MATRIX:
                    raise ValueError(f"what is compressed at byte {place - 8} is no variable")
                name = _check_matrix(stream, wanted)
                if name in wanted and name in found:
                    raise ValueError(f"{name} stands twice")
                found.add(name)
                place += size


class _Stream:
    """Bytes of one element, unpacked as far as they are read."""

    def __init__(self, content: mmap.mmap, start: int, end: int, order: str, *, compressed: bool) -> None:
        self._content, self._place, self._end = content, start, end
        self._order = order
        self._unpacker = zlib.decompressobj() if compressed else None
        self._packed = b""
        self._ready, self._used = b"", 0

    def read(self, count: int) -> bytes:
        while len(self._ready) - self._used < count:
            more = self._more()
            if not more:
                raise ValueError("a variable ends too early")
            self._ready, self._used = self._ready[self._used :] + more, 0
        self._used += count
        return self._ready[self._used - count : self._used]

    def skip(self, count: int) -> None:
        while count > 0:
            step = min(count, BLOCK)
            self.read(step)
            count -= step

    def tag(self) -> tuple[int, int, bytes | None]:
        """Type and size of the next element, and its bytes if they stand in the tag itself."""
        raw = self.read(8)
        kind, size = struct.unpack(f"{self._order}II", raw)
        if kind >> 16:
            small = kind >> 16
            if small > 4:
                raise ValueError("an element is larger than its tag says")
            return kind & 0xFFFF, small, raw[4 : 4 + small]
        return kind, size, None

    def element(self, kinds: Collection[int], most: int) -> bytes:
        """The bytes of a small element of one of these types."""
        kind, size, inside = self.tag()
        if kind not in kinds or size > most:
            raise ValueError("a variable's header is damaged")
        if inside is not None:
            return inside
        return self.read(-(-size // 8) * 8)[:size]

    def numbers(self, kind: int, most: int) -> tuple[int, ...]:
        content = self.element((kind,), most)
        letter = "i" if kind == INT32 else "I"
        return struct.unpack(f"{self._order}{len(content) // 4}{letter}", content[: len(content) // 4 * 4])

    def _more(self) -> bytes:
        """The next bytes, a bounded number of them however well they were packed; none at the end."""
        if self._unpacker is None:
            return self._take()
        while not self._unpacker.eof:
            packed = self._packed or self._take()
            if not packed:
                break
            result = self._unpacker.decompress(packed, BLOCK)
            self._packed = self._unpacker.unconsumed_tail
            if result:
                return result
        return b""

    def _take(self) -> bytes:
        taken = self._content[self._place : min(self._place + BLOCK, self._end)]
        self._place += len(taken)
        return taken


def _check_matrix(stream: _Stream, wanted: Collection[str] | None) -> str:
    """Check a variable, or (if no names are wanted) what is in a cell, and return its name."""
    flags = stream.numbers(UINT32, 8)
    sizes = stream.numbers(INT32, 4 * 32)
    name = stream.element((INT8,), 1 << 10).decode("latin-1")
    if len(flags) != 2 or min(sizes, default=-1) < 0:
        raise ValueError("a variable's header is damaged")
    if wanted is not None and name not in wanted:
        return name
    what = name if wanted is not None else "a cell"
    kind = flags[0] & 0xFF
    if flags[0] & COMPLEX_FLAG:
        raise ValueError(f"{what} holds complex numbers")
    if kind == CELL and wanted is not None:
        for _ in range(math.prod(sizes)):
            inner, size, inside = stream.tag()
            if inner != MATRIX or inside is not None:
                raise ValueError(f"{what} is damaged")
            if size:
                _check_matrix(stream, None)
    elif kind == CHARACTERS or kind in NUMERIC:
        inner, size, inside = stream.tag()
        if inner not in (NUMBERS if kind in NUMERIC else NUMBERS | TEXT):
            raise ValueError(f"{what} is damaged: its elements are of no known type")
        if wanted is None and inside is None:  # in a cell, after which another comes
            stream.skip(-(-size // 8) * 8)
    else:
        raise ValueError(f"{what} is neither an ordinary array of numbers nor text")
    return name
