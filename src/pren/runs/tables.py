"""The tables of a run that have a row per image of the pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pren.files import write_csv


@dataclass(frozen=True)
class ImageTables:
    """Writes tables that call an image by its name, or by its place in the pool where images have no names.

    Attributes:
        names: Of the images of the pool, None if they have none; known to whoever has the data.
        unreadable: Why an image is not in the pool, by its name.
    """

    names: Sequence[str] | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def write_pseudo_labels(self, path: Path, labels: Iterable[tuple[int, str]]) -> None:
        """Write places in the pool and their classes."""
        if self.names is None:
            write_csv(path, ("image", "class"), labels)
        else:
            write_csv(path, ("file", "class"), sorted((self.names[place], label) for place, label in labels))

    def write_predictions(self, path: Path, labels: Iterable[tuple[str, float]]) -> None:
        """Write the class and the score of every image; files that cannot be read have the reason instead."""
        if self.names is None:
            write_csv(path, ("image", "class", "score"), ((place, *label) for place, label in enumerate(labels)))
            return
        rows: list[tuple[Any, ...]] = [(name, *label, "") for name, label in zip(self.names, labels, strict=True)]
        rows += [(name, "", "", reason) for name, reason in self.unreadable.items()]
        write_csv(path, ("file", "class", "score", "error"), sorted(rows))
