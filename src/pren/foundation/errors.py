"""The exception that means "the user can fix this"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST_SHOWN = 60


class PrenError(Exception):
    """An error that a user can cause and fix.

    The message says what is wrong, where, and what to do. The command line prints it and exits with 2; any other
    exception is a bug in pren.

    Attributes:
        code: A short, stable name for the kind of error, such as "not-a-run", for programs and tests.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[PrenError], tuple[str, str]]:
        return type(self), (self.code, str(self))


class SharedError(PrenError):
    """An error that all processes of a run raise together; one process per machine reports it."""


def suggest(word: str, known: Iterable[str]) -> str:
    """A sentence that suggests the closest known words, or lists all of them."""
    options = sorted(known)
    near = difflib.get_close_matches(word, options, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else f"Known are {', '.join(options)}."


def quoted(text: str) -> str:
    """Text from a user's file for a message: quoted, on one line, shortened, without control characters."""
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…")


def reason(error: Exception) -> str:
    """The text of an exception for one of our messages; a KeyError alone only shows the key."""
    if isinstance(error, KeyError):
        return f"it lacks {quoted(str(error.args[0]) if error.args else '')}"
    return str(error) or type(error).__name__


def visible(text: object) -> str:
    """The text with control characters as escapes: names of classes and files can hold some that a terminal obeys."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))
