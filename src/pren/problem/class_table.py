"""The class table: the name and the signature of every class."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pren.foundation.errors import PrenError, quoted
from pren.problem.inputs import Array, to_numpy

log = logging.getLogger(__name__)

LONGEST_NAME = 255  # bytes, the limit for folder names


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Every class, seen and unseen: its name and its signature (the vector that describes it).

    Attributes:
        names: One per class, all different.
        signatures: (L, m) float64, one row per class (the paper's M is its transpose).
        seen: (L,) True where the class has labelled inputs.
        normalised: Whether the rows were scaled to unit length.
        attributes: (m,) names of the columns of the signatures; None if they have none.
    """

    names: tuple[str, ...]
    signatures: NDArray[np.float64]
    seen: NDArray[np.bool_]
    normalised: bool
    attributes: tuple[str, ...] | None = None

    @classmethod
    def build(
        cls,
        names: Sequence[str],
        signatures: Array,
        seen: NDArray[np.bool_],
        *,
        normalise: bool = True,
        attributes: Sequence[str] | None = None,
        told: bool = False,
    ) -> ClassTable:
        """Check a table and scale its signatures to unit length if `normalise`.

        Classes with equal signatures are warned of, unless the user was `told` before.
        """
        table = signature_table(signatures)
        if len(names) != len(table):
            raise PrenError("class-count", f"{len(names)} class names but {len(table)} signatures: give one per class.")
        _check_names(names)
        _check_signatures(names, table)
        if not seen.any():
            raise PrenError("no-seen-class", "No class has a labelled input: give labelled inputs of at least one.")
        if seen.all():
            raise PrenError("no-unseen-class", "Every class has labelled inputs: add a signature of one that has none.")
        if normalise:
            table = table / np.abs(table).max(axis=1, keepdims=True)  # or squares could overflow or underflow
            table = table / np.linalg.norm(table, axis=1, keepdims=True)
        if not told:
            _warn_of_twins(names, table)
        return cls(tuple(names), table, seen.astype(bool), normalise, None if attributes is None else tuple(attributes))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"ClassTable({self._counts()})"

    def _counts(self) -> str:
        seen, attributes = int(self.seen.sum()), self.signatures.shape[1]
        return f"{seen} seen and {len(self) - seen} unseen classes, {attributes} attributes"

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """(L,) True where the class has no labelled inputs."""
        return ~self.seen

    def named(self, rows: NDArray[np.int64]) -> NDArray[np.str_]:
        """The names (N,) of rows (N,); "" for -1."""
        return np.array([*self.names, ""])[rows]

    def among(self, which: str) -> NDArray[np.bool_]:
        """(L,) True for the "unseen", "seen" or "all" classes."""
        masks = {"unseen": self.unseen, "seen": self.seen, "all": np.ones(len(self), dtype=bool)}
        if which not in masks:
            raise PrenError("unknown-name", f"among must be one of {', '.join(masks)}, not {which!r}.")
        return masks[which]


def label_indices(labels: Array | Sequence[str], names: Sequence[str]) -> NDArray[np.int64]:
    """Check labels (row numbers or class names) and return row numbers of the class table."""
    array = to_numpy(labels, "labels")
    if array.ndim != 1:
        raise PrenError("labels-shape", f"labels has shape {array.shape}: give one label per input.")
    if array.dtype.kind == "U":
        rows = {name: row for row, name in enumerate(names)}
        for place, label in enumerate(array.tolist()):
            if label not in rows:
                raise PrenError("label-unknown", f"Label {label!r} (input {place}) has no signature: add one.")
        return np.array([rows[label] for label in array.tolist()], dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise PrenError("labels-kind", f"labels must be whole numbers or class names, not {array.dtype}.")
    outside = (array < 0) | (array >= len(names))
    if outside.any():
        place = int(outside.argmax())
        raise PrenError("label-unknown", f"Label {array[place]} (input {place}) is no row from 0 to {len(names) - 1}.")
    return array.astype(np.int64)


def signature_table(signatures: Array) -> NDArray[np.float64]:
    """Signatures (L, m) as float64; `PrenError` if they are not a table of numbers."""
    table = to_numpy(signatures, "signatures")
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiub":
        what = f"{table.dtype} of shape {table.shape}"
        raise PrenError("signatures-kind", f"signatures must be a table of numbers (classes, attributes), not {what}.")
    return table.astype(np.float64)


def name_fault(name: str) -> str | None:
    """What is wrong with a class name, which must be a valid folder name; None if it is fine."""
    if not name.strip():
        return "the class has no name."
    if name != name.strip() or any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
        return f"class {quoted(name)} begins or ends with a space or has a control character: remove it."
    if "/" in name or "\\" in name or name in (".", "..") or len(name.encode()) > LONGEST_NAME:
        return f"class {quoted(name)} is not a valid folder name: use no / or \\ and at most {LONGEST_NAME} bytes."
    return None


def _check_names(names: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if (fault := name_fault(name)) is not None:
            raise PrenError("class-name", f"Row {row} of the classes: {fault}")
        if name in first:
            raise PrenError("class-twice", f"Rows {first[name]} and {row} are both named {name!r}: rename one class.")
        first[name] = row


def _check_signatures(names: Sequence[str], table: NDArray[np.float64]) -> None:
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        raise PrenError("not-finite", f"The signature of class {names[int(bad.argmax())]!r} holds NaN or infinity.")
    zero = ~table.any(axis=1)
    if zero.any():
        name = names[int(zero.argmax())]
        raise PrenError("signature-zero", f"The signature of class {name!r} is all zeros: fill it in or remove it.")


def _warn_of_twins(names: Sequence[str], table: NDArray[np.float64]) -> None:
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    for row, original in enumerate(first[inverse.reshape(-1)]):
        if original < row:
            twins = (names[original], names[row])
            log.warning("Classes %r and %r have the same signature: no method can tell them apart.", *twins)
