"""The one exception that means "the user can fix this"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST_SHOWN = 60


class PrenError(Exception):
    """Something a user can cause and can mend.

    The message says what is wrong, where, and what to do about it. The command line prints it and exits with 2;
    anything else that escapes is a defect of ours.

    Attributes:
        code: The kind of error, as a short name that stays the same when the message gets better: "not-a-run". Programs
            and tests look at the code, people at the message.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[PrenError], tuple[str, str]]:
        return type(self), (self.code, str(self))


class SharedError(PrenError):
    """One that every process of a run raises alike, so that one of them on each machine speaks for all."""


def suggest(word: str, known: Iterable[str]) -> str:
    """A sentence that offers the nearest known words, or all of them."""
    options = sorted(known)
    near = difflib.get_close_matches(word, options, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else f"Known are {', '.join(options)}."


def quoted(text: str) -> str:
    """Text from a user's file in quotation marks: on one line, not too long, nothing in it that drives a terminal."""
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…")


def reason(error: Exception) -> str:
    """What an exception says, for a sentence of ours: of a key that is missing, Python shows the bare key."""
    if isinstance(error, KeyError):
        return f"it lacks {quoted(str(error.args[0]) if error.args else '')}"
    return str(error) or type(error).__name__
