"""Signatures and where they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Signatures:
    """A vector for every class from one source, neither scaled nor checked.

    Attributes:
        names: (L,) the classes.
        values: (L, m) a row for each.
        source: Where they come from, JSON-ready. Its ``kind`` is "attributes", "text" or another name.
        attributes: (m,) names of the columns; None if they have none.
        texts: (L,) the descriptions of each class, if words were encoded.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    source: dict[str, Any]
    attributes: tuple[str, ...] | None = None
    texts: tuple[tuple[str, ...], ...] | None = None

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> Signatures:
        """The signatures of some classes, in this order."""
        texts = None if self.texts is None else tuple(self.texts[row] for row in rows)
        names = tuple(self.names[row] for row in rows)
        return Signatures(names, self.values[rows], self.source, self.attributes, texts)

    def record(self) -> dict[str, Any]:
        """What a run records: the source, the width, and a hash of names and values."""
        digest = hashlib.sha256("\0".join(self.names).encode() + b"\0" + self.values.tobytes())
        return {**self.source, "width": self.values.shape[1], "hash": digest.hexdigest()[:16]}
