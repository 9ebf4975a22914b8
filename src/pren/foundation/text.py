"""Class and file names can hold control characters, which a terminal would obey: show them as escapes."""

from __future__ import annotations


def visible(text: object) -> str:
    """The text with control and invisible characters as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))
