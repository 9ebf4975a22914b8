"""Problems of a user's files, collected instead of raised, so that the user can fix all of them at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from pren.foundation.errors import quoted

Severity = Literal["error", "warning"]

MOST_PER_FILE = 1000  # of one severity: a file that is not a table can have millions
MOST_COMPARED = 200_000  # names that are compared in all for suggestions, which is slow
LONGEST_COMPARED = 100


@dataclass(frozen=True)
class Finding:
    """One problem."""

    file: str  # its path in the folder
    message: str  # what is wrong, and what to do
    line: int | None = None  # counted from 1; None for the file as a whole
    severity: Severity = "error"  # with a warning the data can be used, but are probably wrong

    def __str__(self) -> str:
        file = self.file if self.file.isprintable() else repr(self.file)
        return f"{file}{'' if self.line is None else f', line {self.line}'}: {self.message}"


class Findings:
    """Collects problems, a limited number per file."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._counts: Counter[tuple[str, Severity]] = Counter()
        self._to_compare = MOST_COMPARED

    def add(self, file: str, message: str, line: int | None = None, severity: Severity = "error") -> None:
        """Note one problem."""
        self._counts[file, severity] += 1
        if self._counts[file, severity] <= MOST_PER_FILE:
            self._found.append(Finding(file, message, line, severity))

    def full(self, file: str) -> bool:
        """Whether a file has too many errors to read on."""
        return self._counts[file, "error"] > MOST_PER_FILE

    def listed(self) -> list[Finding]:
        """All problems: errors first, then by file in the order of discovery, then by line."""
        more = [
            Finding(file, f"it has more {severity}s: fix these first.", None, severity)
            for (file, severity), count in self._counts.items()
            if count > MOST_PER_FILE
        ]
        place = {file: number for number, file in enumerate(dict.fromkeys(file for file, _ in self._counts))}
        return sorted(self._found + more, key=lambda one: (one.severity != "error", place[one.file], one.line or 0))

    def nearest(self, word: str, known: Collection[str]) -> str:
        """A sentence that suggests the closest known word; "" if there is none, or too many to compare."""
        if len(word) > LONGEST_COMPARED or len(known) > self._to_compare:
            return ""
        self._to_compare -= len(known)
        near = get_close_matches(word, known, n=1)
        return f" Did you mean {quoted(near[0])}?" if near else ""
