"""A file with the results of a campaign, from which an interrupted one goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Journal:
    """A file with one JSON object per line; without a path, nothing is written."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self, kind: str) -> list[dict[str, Any]]:
        """The entries of a kind; half a line after an interruption is ignored."""
        if self._path is None or not self._path.exists():
            return []
        lines = [line for line in self._path.read_text(encoding="utf-8").split("\n") if line.endswith("}")]
        return [entry for entry in map(json.loads, lines) if entry.pop("kind") == kind]

    def add(self, kind: str, entry: dict[str, Any]) -> None:
        """Add an entry."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps({"kind": kind, **entry}))
