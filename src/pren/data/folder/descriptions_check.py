"""Find descriptions that are too similar, or too long for an encoder."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

from pren.data.describe import DEFAULT_ENCODER, KnownEncoder, find_encoder
from pren.data.folder.class_tables import ClassRows, Content
from pren.data.folder.findings import Findings
from pren.foundation.errors import PrenError, quoted

MOST_COMPARED = 1000  # classes; each is compared with every other
NEARLY = 0.8  # the share of word pairs of two descriptions that are in both
SHORT = 200  # characters; every encoder reads such a text to its end


def look_for_twins(rows: ClassRows, findings: Findings) -> None:
    """Find classes with the same signature."""
    first: dict[Content, str] = {}
    for name, content in rows.rows.items():
        twin = first.setdefault(content, name)
        if twin != name:
            message = f"{quoted(name)} has the same signature as {quoted(twin)}: write how they differ."
            findings.add(rows.file, message, rows.known[name], "warning")


def look_at_words(rows: ClassRows, encoder: str | None, findings: Findings) -> None:
    """Find classes with the same or nearly the same words, a missing encoder, and texts that are too long for it."""
    words = {name: _words(" ".join(map(str, texts))) for name, texts in rows.rows.items()}
    pairs = {name: set(pairwise(these)) for name, these in words.items()}
    if len(words) <= MOST_COMPARED:
        for (one, these), (other, those) in combinations(words.items(), 2):
            if these == those:
                message = f"{quoted(other)} has the same description as {quoted(one)}: write how they differ."
            elif len(pairs[one] & pairs[other]) >= NEARLY * len(pairs[one] | pairs[other]) > 0:
                message = f"{quoted(other)} has nearly the same description as {quoted(one)}: write how they differ."
            else:
                continue
            findings.add(rows.file, message, rows.known[other], "warning")
    try:
        _look_at_encoder(rows, encoder or DEFAULT_ENCODER, findings)
    except PrenError as error:
        findings.add(rows.file, str(error), severity="warning")


def _look_at_encoder(rows: ClassRows, name: str, findings: Findings) -> None:
    encoder = find_encoder(name)
    if not isinstance(encoder, KnownEncoder):
        return
    encoder.facts()  # raises if a package is not installed
    long = [(name, str(text)) for name, texts in rows.rows.items() for text in texts if len(str(text)) > SHORT]
    for (name, text), cut in zip(long, encoder.cuts([text for _, text in long]) if long else (), strict=True):
        if cut:
            message = f"{quoted(text)} of {quoted(name)} is too long for the encoder: divide it into several rows."
            findings.add(rows.file, message, rows.known[name], "warning")


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.casefold()))
