"""What a person has said, in the order in which it was said: a file that only grows.

Every entry is a line of JSON and is on the disk before the page hears that it was kept. So a kill loses none, and
several windows cannot overwrite each other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pren.foundation.errors import PrenError, reason
from pren.foundation.files import make_folder
from pren.review.app import RefusedError

JOURNAL = "answers.jsonl"
MARKS = ("stranger", "later", "open")
Mark = Literal["", "stranger", "later", "open"]


class Verdict(NamedTuple):
    """What a person says of a photograph or of the name of a group: a class, or a mark.

    Attributes:
        name: A class; "" if there is a mark.
        mark: "stranger" (none of the classes), "later", or "open" (no answer any more).
    """

    name: str = ""
    mark: Mark = ""


@dataclass(frozen=True)
class Entry:
    """One answer: photographs, and groups, by name.

    Attributes:
        number: From 1 on.
        window: Which window of a browser gave it.
        files: Verdicts on photographs.
        groups: Verdicts on names of groups.
        undoes: The number of the entry that this one takes back; 0 for an answer.
    """

    number: int
    window: str
    files: Mapping[str, Verdict] = field(default_factory=dict)
    groups: Mapping[str, Verdict] = field(default_factory=dict)
    undoes: int = 0

    def to_json(self) -> dict[str, Any]:
        """As a line of the file."""
        return {
            "number": self.number,
            "window": self.window,
            "files": {name: list(verdict) for name, verdict in self.files.items()},
            "groups": {name: list(verdict) for name, verdict in self.groups.items()},
            "undoes": self.undoes,
        }

    @classmethod
    def from_json(cls, content: Any) -> Entry:
        """The inverse; raises a ValueError, TypeError or LookupError."""
        files, groups = ({k: _verdict(v) for k, v in content[part].items()} for part in ("files", "groups"))
        return cls(int(content["number"]), str(content["window"]), files, groups, int(content["undoes"]))


class Journal:
    """The entries of one review.

    Args:
        folder: Where the file is; made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.path = folder / JOURNAL
        self.entries: list[Entry] = []
        self._files: dict[str, list[Entry]] = {}
        self._undone: set[int] = set()
        whole = self._read()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        os.ftruncate(self._file, whole)
        os.lseek(self._file, 0, os.SEEK_END)
        self.before = len(self.entries)  # entries of earlier sessions

    @property
    def position(self) -> int:
        """The number of the last entry."""
        return len(self.entries)

    def verdicts(self) -> dict[str, Verdict]:
        """What holds now, by photograph."""
        found = ((name, self.verdict(name)) for name in list(self._files))  # another thread may add one
        return {name: verdict for name, verdict in found if verdict is not None}

    def verdict(self, name: str) -> Verdict | None:
        """What holds now of a photograph; None if nothing."""
        standing = next((each for each in reversed(self._files.get(name, ())) if each.number not in self._undone), None)
        if standing is None or standing.files[name].mark == "open":
            return None
        return standing.files[name]

    def group_verdicts(self, after: int) -> dict[str, Verdict]:
        """What was said of groups since an entry, without what was taken back."""
        standing = (each for each in self.entries[after:] if each.number not in self._undone)
        return {name: verdict for each in standing for name, verdict in each.groups.items()}

    def add(
        self, window: str, files: Mapping[str, Verdict], groups: Mapping[str, Verdict], since: int | None = None
    ) -> Entry:
        """Keep an answer.

        Args:
            window: Which window gave it.
            files: Verdicts on photographs.
            groups: Verdicts on groups.
            since: The last entry that the window has seen.

        Raises:
            RefusedError: If another window has answered about one of them meanwhile.
        """
        for entry in [] if since is None else self.entries[since:]:
            both = entry.files.keys() & files.keys() | entry.groups.keys() & groups.keys()
            if both and entry.window != window:
                raise RefusedError(409, "answered", f"Another window has just answered for {min(both)}: look again.")
        return self._keep(Entry(self.position + 1, window, dict(files), dict(groups)))

    def undo(self, window: str) -> Entry | None:
        """Take back the last answer of a window, or else of an earlier session; None if there is none."""
        standing = [each for each in self.entries if not each.undoes and each.number not in self._undone]
        own = [each for each in standing if each.window == window]
        last = max(own or [each for each in standing if each.number <= self.before], key=_number, default=None)
        if last is None:
            return None
        self._keep(Entry(self.position + 1, window, undoes=last.number))
        return last

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _keep(self, entry: Entry) -> Entry:
        line = json.dumps(entry.to_json(), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        start = os.lseek(self._file, 0, os.SEEK_END)
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, start)
            raise PrenError("write-failed", f"Cannot write {self.path}: {error.strerror}. Make room there.") from error
        self._take(entry)
        return entry

    def _take(self, entry: Entry) -> None:
        self.entries.append(entry)
        if entry.undoes:
            self._undone.add(entry.undoes)
        for name in entry.files:
            self._files.setdefault(name, []).append(entry)

    def _read(self) -> int:
        """Read the file; returns the bytes of whole lines, as a kill may leave half a line at the end."""
        if not self.path.exists():
            return 0
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for line in content[:whole].splitlines():
            try:
                entry = Entry.from_json(json.loads(line))
                if entry.number != self.position + 1:
                    raise ValueError("an entry is missing")
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
                said = f"{self.path}, line {self.position + 1} is damaged ({reason(error)}): mend or move the file."
                raise PrenError("damaged", said) from error
            self._take(entry)
        return whole


def given_rows(
    now: Iterable[tuple[str, str]], touched: Mapping[str, str], verdicts: Mapping[str, Verdict]
) -> list[tuple[str, str]]:
    """The rows of ``labels.csv``: those of other hands stay, those of photographs in the journal follow it.

    Args:
        now: The rows in the file, of photographs and classes.
        touched: The photographs in the journal, and the class that each had before; "" for none.
        verdicts: What holds now.
    """
    rows = {name: label for name, label in now if name not in touched}
    for name, before in touched.items():
        verdict = verdicts.get(name)
        label = before if verdict is None else verdict.name
        if label:
            rows[name] = label
    return sorted(rows.items())


def _verdict(content: Any) -> Verdict:
    name, mark = content
    if not isinstance(name, str) or mark not in ("", *MARKS):
        raise ValueError("it has an unknown verdict")
    return Verdict(name, mark)


def _number(entry: Entry) -> int:
    return entry.number
