"""Class and file names are text of others: what could drive a terminal or turn a line around is shown as escapes."""

from __future__ import annotations


def visible(text: object) -> str:
    """Any text without control characters and marks that nobody sees."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))
