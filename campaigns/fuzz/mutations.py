"""Ways to damage a file: its bytes, its lines, or the structure of its content."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

PLACES = st.integers(0, 1 << 20)  # taken modulo what is there, so that the same edit fits any file


@dataclass(frozen=True)
class ByteEdit:
    """A change of some bytes; see `BYTE_EDITS`."""

    kind: str
    at: int
    size: int = 1
    bit: int = 0
    data: bytes = b""

    def apply(self, content: bytes) -> bytes:
        """The content, changed."""
        start = self.at % (len(content) + 1)
        end = start + self.size
        before, after = content[:start], content[start:]
        if self.kind == "flip":
            start = min(start, max(len(content) - 1, 0))
            flipped = bytes([content[start] ^ (1 << self.bit)]) if content else b""
            return content[:start] + flipped + content[start + 1 :]
        if self.kind == "overwrite":
            return before + self.data + content[start + len(self.data) :]
        return {
            "delete": before + content[end:],
            "insert": before + self.data + after,
            "truncate": before,
            "duplicate": before + content[start:end] + after,
            "append": content + self.data,
            "empty": b"",
        }[self.kind]


FLIPS: SearchStrategy[ByteEdit] = st.builds(ByteEdit, st.just("flip"), PLACES, bit=st.integers(0, 7))
BYTE_EDITS: SearchStrategy[ByteEdit] = FLIPS | st.builds(
    ByteEdit,
    st.sampled_from(["overwrite", "delete", "insert", "truncate", "duplicate", "append", "empty"]),
    PLACES,
    size=st.integers(1, 200),
    data=st.binary(min_size=1, max_size=8),
)

LINES = (
    "params: &a {heads: 2}",
    "split: *a",
    "x: &x [*x]",
    "<<: {seed: 3}",
    "<<: [1, 2]",
    "params: !!python/object/apply:os.system ['false']",
    "params: !!python/name:os.system ''",
    "data: !!binary aGVsbG8=",
    "data: !!binary '***'",
    "params: !!set {heads, dim}",
    "params: !!omap [heads: 2]",
    "data: !unknown x",
    "seed: !!int x",
    "seed: !!float ''",
    "? [1, 2]\n: 3",
    "? {a: b}\n: 3",
    "1: 2",
    "null: 3",
    "2001-99-99: x",
    "record: 2001-12-14t21:59:43.10-05:00",
    "split: 2001-01-01",
    "setting: 1:30:00",
    "format: 1",
    "format: 3",
    "format: 1e400",
    "format: 2.0",
    "format: 'two'",
    "---",
    "...",
    "%YAML 9.9",
    "\tdata: x",
    "  - x",
    "data: 'unterminated",
    'data: "\\ud800.npz"',
    'data: "\\0.npz"',
    "data: [a, b]",
    "data: " + "x" * 5000 + ".npz",
    "root: /",
    "root: ''",
    "record: {id: 1}",
    "params:",
    "params: []",
    "method: null",
    "#" * 3000,
    "a: " + "[" * 60 + "]" * 60,
    "a: " + "[" * 2000 + "]" * 2000,
    "record: " + "{a: " * 300 + "}" * 300,
    "x: " + "9" * 5000,
    "\ufeff",
    "\x00",
    "\x85",
    "\u2028",
)


@dataclass(frozen=True)
class LineEdit:
    """A change of some lines of text; see `LINE_EDITS`."""

    kind: str
    at: int
    other: int
    text: str

    def apply(self, content: str) -> str:
        """The text, changed."""
        lines = content.split("\n")
        at, other = self.at % len(lines), self.other % len(lines)
        if self.kind == "insert":
            lines.insert(at, self.text)
        elif self.kind == "delete":
            del lines[at]
        elif self.kind == "duplicate":
            lines.insert(other, lines[at])
        elif self.kind == "swap":
            lines[at], lines[other] = lines[other], lines[at]
        elif self.kind == "indent":
            lines[at] = "  " + lines[at]
        elif self.kind == "value":
            lines[at] = lines[at].partition(":")[0] + ": " + self.text
        else:
            lines[at] = self.text
        return "\n".join(lines)


LINE_EDITS: SearchStrategy[LineEdit] = st.builds(
    LineEdit,
    st.sampled_from(["insert", "delete", "duplicate", "swap", "indent", "value", "replace"]),
    st.integers(0, 100),
    st.integers(0, 100),
    st.sampled_from(LINES) | st.text(max_size=20),
)


@dataclass(frozen=True)
class Nested:
    """Lists in lists, or mappings in mappings; not written out, to keep reports readable."""

    depth: int
    mapping: bool

    def value(self) -> Any:
        """The real thing."""
        value: Any = 1
        for _ in range(self.depth):
            value = {"a": value} if self.mapping else [value]
        return value


@dataclass(frozen=True)
class Long:
    """A long text or list; not written out, to keep reports readable."""

    item: Any
    count: int

    def value(self) -> Any:
        """The real thing."""
        return self.item * self.count if isinstance(self.item, str) else [self.item] * self.count


SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 3, -1, -(10**30), 10**30, 2**31, 2**63, 2**64, 10**400, -(10**400)),
    *(0.5, -0.0, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf")),
    *("", " ", "x", "\0", "\ud800", "\udcff", "é\n\x1b[31m", "nan", "1e999", "-1", "null", "[/]", "../x", "/", "."),
    *("zsl", "gzsl", "pren", "eszsl", "progressive", "small-cnn", "half", "all", "literal", "lapack", "none"),
    *([], {}, [None], [0], [1, 2], [1.5], [True], ["x"], {"a": 1}, {"seed": 1}, [[]], [{}]),
)
VALUES: SearchStrategy[Any] = st.one_of(
    st.sampled_from(SCALARS),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.lists(st.integers(-3, 3) | st.text(max_size=3), max_size=4),
    st.dictionaries(st.text(max_size=5), st.integers(0, 3), max_size=3),
    st.builds(Nested, st.sampled_from([20, 120, 240, 300, 480, 900]), st.booleans()),
    st.builds(Long, st.sampled_from(["x", "9", 0, 1, "[", "\n"]), st.sampled_from([50, 5000, 50_000])),
)


@dataclass(frozen=True)
class StructureEdit:
    """A change somewhere in nested lists and mappings; see `STRUCTURE_EDITS`."""

    kind: str
    path: tuple[int, ...]
    value: Any
    key: Any

    def apply(self, document: Any) -> Any:
        """The document, changed."""
        document = copy.deepcopy(document)
        value = self.value.value() if isinstance(self.value, (Nested, Long)) else copy.deepcopy(self.value)
        holder: Any = None
        place: Any = None
        target = document
        for step in self.path:
            if not isinstance(target, (dict, list)) or not target:  # an earlier edit may have left no more than that
                break
            places: Sequence[Any] = list(target) if isinstance(target, dict) else range(len(target))
            holder, place = target, places[step % len(places)]
            target = target[place]
        if holder is None:
            return value
        if self.kind == "delete":
            del holder[place]
        elif self.kind == "rename" and isinstance(holder, dict):
            holder[self.key] = holder.pop(place)
        elif self.kind == "add" and isinstance(holder, dict):
            holder[self.key] = value
        elif self.kind == "add":
            holder.insert(place, value)
        else:
            holder[place] = value
        return document


def structure_edits(keys: SearchStrategy[Any], values: SearchStrategy[Any] = VALUES) -> SearchStrategy[StructureEdit]:
    """Edits whose new keys and values come from `keys` and `values`."""
    return st.builds(
        StructureEdit,
        st.sampled_from(["replace", "delete", "rename", "add"]),
        st.lists(st.integers(0, 40), max_size=4).map(tuple),
        values,
        keys,
    )


JSON_EDITS = structure_edits(st.sampled_from(["", "x", "format", "a" * 300, "\ud800", "../x"]) | st.text(max_size=5))
YAML_EDITS = structure_edits(
    st.sampled_from(["", "x", "heads", "seed", "dim", "record", None, 1, 1.5, True]) | st.text(max_size=5)
)
# YAML says more than JSON, and pren never writes it.
FORGED_YAML = structure_edits(
    st.sampled_from(["x", "started", None, 1, True, date(2001, 1, 1)]),
    st.sampled_from([date(2001, 1, 1), datetime(2001, 1, 1, tzinfo=timezone.utc), b"bytes", {1, 2}, {1: 2}, {None: 1}])
    | st.sampled_from([float("nan"), float("inf"), {"a": float("nan")}]),
)
