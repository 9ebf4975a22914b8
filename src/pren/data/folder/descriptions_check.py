"""Look for descriptions that do not tell classes apart, or that an encoder does not read to their end."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

from pren.data.folder.class_tables import ClassRows, Content
from pren.data.folder.findings import Findings
from pren.describe import DEFAULT_ENCODER, KnownEncoder, find_encoder
from pren.foundation.errors import PrenError, quoted

MOST_COMPARED = 1000  # classes; each is compared with every other
NEARLY = 0.8  # of all pairs of neighbouring words in two descriptions, how many are in both
SHORT = 200  # characters: so few are no more tokens than any encoder reads


def look_for_twins(rows: ClassRows, findings: Findings) -> None:
    """Look for classes that nothing tells apart."""
    first: dict[Content, str] = {}
    for name, content in rows.rows.items():
        twin = first.setdefault(content, name)
        if twin != name:
            message = f"{quoted(name)} has the same signature as {quoted(twin)}: nothing tells them apart."
            findings.add(rows.file, message, rows.known[name], "warning")


def look_at_words(rows: ClassRows, encoder: str | None, findings: Findings) -> None:
    """Look for classes with the same or nearly the same words, an encoder that is missing, and texts that it cuts."""
    words = {name: _words(" ".join(map(str, texts))) for name, texts in rows.rows.items()}
    pairs = {name: set(pairwise(these)) for name, these in words.items()}
    if len(words) <= MOST_COMPARED:
        for (one, these), (other, those) in combinations(words.items(), 2):
            if these == those:
                message = f"{quoted(other)} has the same description as {quoted(one)}: nothing tells them apart."
            elif len(pairs[one] & pairs[other]) >= NEARLY * len(pairs[one] | pairs[other]) > 0:
                message = f"{quoted(other)} has nearly the same description as {quoted(one)}: tell how they differ."
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
    encoder.facts()  # says what is not installed
    long = [(name, str(text)) for name, texts in rows.rows.items() for text in texts if len(str(text)) > SHORT]
    for (name, text), cut in zip(long, encoder.cuts([text for _, text in long]) if long else (), strict=True):
        if cut:
            message = f"the encoder does not read {quoted(text)} of {quoted(name)} to its end: make it several rows."
            findings.add(rows.file, message, rows.known[name], "warning")


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.casefold()))
