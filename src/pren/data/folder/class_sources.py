"""Choose the sources of a folder that describe the classes, and make signatures from them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.data.describe import (
    DEFAULT_ENCODER,
    KnownEncoder,
    Recipe,
    Signatures,
    combine,
    encode,
    find_encoder,
    in_templates,
    source_names,
    templates_of,
    varies,
)
from pren.data.folder.class_tables import (
    DESCRIPTIONS,
    NAMES,
    SIGNATURES,
    SOURCES,
    VECTORS,
    ClassRows,
    Content,
    read_class_rows,
    read_vectors,
)
from pren.data.folder.findings import Findings
from pren.foundation.errors import PrenError, quoted
from pren.images.clip import PREFIX

log = logging.getLogger(__name__)

TOGETHER = ("attributes", "descriptions")  # used together unless others are asked for


@dataclass(frozen=True)
class Wording:
    """How to describe classes.

    Attributes:
        encoder: The text encoder for words; None for the default one.
        signatures: Sources separated by commas; None for attributes and descriptions where both exist, else the first.
        weights: The weight of each of several sources; None for equal weights.
        template: The sentence for names, where nothing else is known; several are averaged. None for the encoder's own.
    """

    encoder: str | None = None
    signatures: str | None = None
    weights: Sequence[float] | None = None
    template: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        given = [self.template] if isinstance(self.template, str) else self.template
        for template in given if given is not None else ():
            if "{}" not in template:
                raise PrenError("template", f"The template {template!r} lacks {{}}, the place of the class name.")
        if given is not None and not given:
            raise PrenError("template", "There is no template: give one, such as 'a photo of a {}.', or leave it out.")

    def templates(self) -> tuple[str, ...]:
        """The sentences for names."""
        if self.template is None:
            return templates_of(self.encoder or DEFAULT_ENCODER)
        return (self.template,) if isinstance(self.template, str) else tuple(self.template)

    def sources(self, folder: Path) -> list[str]:
        """The named sources, or else attributes and descriptions, or the first one that the folder has a file for."""
        has = [name for name, file in SOURCES.items() if os.path.lexists(folder / file)]
        if self.signatures is None:
            if set(TOGETHER) <= set(has) and self._reads_words():
                return list(TOGETHER)
            if self.encoder is not None:  # an encoder needs words
                return ["names"] if set(has) - {"vectors"} == {"names"} else ["descriptions"]
            return has[:1] or ["attributes"]
        names = source_names(self.signatures)
        for name in names:
            if name not in has and not (name == "names" and set(has) - {"vectors"}):  # any table has names
                missing = f": there is no {folder / SOURCES[name]}" if name in SOURCES else ""
                listed = ", ".join(f"{known} ({SOURCES[known]})" for known in has) or "none"
                message = f"{folder} has no signatures {name!r}{missing}. It has {listed}."
                raise PrenError("signatures-unknown", message)
        if self.encoder is not None and not set(names) & {"descriptions", "names"}:
            message = f"The text encoder {self.encoder!r} is for words, not for {self.signatures!r}: leave one out."
            raise PrenError("option-conflict", message)
        return names

    def _reads_words(self) -> bool:
        """Whether descriptions can be used: an encoder is named, or the usual one is installed."""
        try:
            usual = find_encoder(self.encoder or DEFAULT_ENCODER)
            if self.encoder is None and isinstance(usual, KnownEncoder):
                usual.facts()
        except PrenError as error:
            if self.encoder is not None:
                raise
            log.warning("%s is not used beside %s: %s", DESCRIPTIONS, SIGNATURES, error)
            return False
        return True


def names_of(source: Mapping[str, Any]) -> list[str]:
    """The names of the sources of a problem from a folder, by its record (`Problem.source`); none for other data."""
    record = source.get("signatures", {})
    kinds = {file: kind for kind, file in SOURCES.items()}
    parts = record.get("sources", [record]) if source.get("name") == "folder" else []
    return ["names" if part.get("templates") else kinds[part["file"]] for part in parts]


def read_sources(folder: Path, wording: Wording, findings: Findings) -> list[ClassRows]:
    """Read every chosen source and note mistakes in `findings`; an empty list if one cannot be read."""
    read: list[ClassRows] = []
    for name in wording.sources(folder):
        file = NAMES if name == "vectors" else SOURCES[name]  # the file that names the classes
        if name == "names" and not os.path.lexists(folder / file):
            file = next(other for other in SOURCES.values() if other != VECTORS and os.path.lexists(folder / other))
        if not os.path.lexists(folder / file):
            _note_missing(name, findings)
            return []
        rows = next((rows for rows in read if rows.file == file), None) or read_class_rows(folder, file, findings)
        if rows is None:
            return []
        if name == "names":
            templates = wording.templates()
            texts: dict[str, Content] = {known: in_templates(templates, known) for known in rows.known}
            rows = replace(rows, kind=name, attributes=(), rows=texts, vectors=None)
        elif name == "vectors":
            rows = read_vectors(folder, rows, findings)
        read.append(rows)
    for rows in read[1:]:
        _compare(read[0], rows, findings)
    return read


def make_signatures(
    sources: Sequence[ClassRows], names: Sequence[str], seen: NDArray[np.bool_], wording: Wording
) -> tuple[Signatures, Recipe]:
    """The signatures of classes, and the recipe to add another class.

    Args:
        sources: From `read_sources`, without mistakes.
        names: (L,) the classes.
        seen: (L,) True where a class has photographs.
        wording: As for `read_sources`.
    """
    made = [_signatures(rows, names, seen, wording) for rows in sources]
    if wording.signatures is None and len(made) > 1:
        made = [each for each in made if varies(each, seen)] or made[:1]
    is_clip = (wording.encoder or "").startswith(PREFIX)  # CLIP has learned the appearance of classes from names
    if [rows.kind for rows in sources] == ["names"] and not is_clip:
        log.warning(
            "Classes are described by their names only (%s). A name says little about how a class looks: expect far "
            "fewer right labels than with attributes or sentences (docs/results/words.md), and write %s if you can.",
            ", ".join(map(repr, wording.templates())),
            DESCRIPTIONS,
        )
    return combine(made, seen, wording.weights), Recipe.of(made, seen, wording.weights)


def _signatures(rows: ClassRows, names: Sequence[str], seen: NDArray[np.bool_], wording: Wording) -> Signatures:
    content = [rows.rows[name] for name in names]
    if rows.numeric:
        values = filled(np.array(content, dtype=np.float64), seen)
        source = {"kind": rows.kind, "file": rows.files()[-1]}
        return Signatures(tuple(names), values, source, rows.attributes or None)
    texts = [tuple(map(str, several)) for several in content]
    more = {"templates": list(wording.templates())} if rows.kind == "names" else {}
    return encode(wording.encoder or DEFAULT_ENCODER, names, texts, file=rows.file, **more)


def filled(values: NDArray[np.float64], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(L, m) with missing numbers (NaN) replaced by the mean of the seen classes.

    If no seen class has a number in a column, by the mean of those that have one, or else 0.
    """
    result = values.copy()
    for column in np.flatnonzero(np.isnan(values).any(axis=0)):
        known = ~np.isnan(values[:, column])
        best = known & seen if (known & seen).any() else known
        result[~known, column] = values[best, column].mean() if best.any() else 0.0
    return result


def _compare(first: ClassRows, other: ClassRows, findings: Findings) -> None:
    """Note classes that only one of two sources has."""
    for here, there in ((first, other), (other, first)):
        if there.complete:
            for name, line in here.known.items():
                if name not in there.known:
                    near = findings.nearest(name, there.known)
                    findings.add(here.file, f"class {quoted(name)} has no row in {there.file}.{near}", line)


def _note_missing(source: str, findings: Findings) -> None:
    file = SOURCES[source]
    if source == "descriptions":
        findings.add(file, "it is missing: add it, with class,description for the text encoder.")
    elif source == "vectors":
        findings.add(NAMES, f"it is missing: add it, with the classes in the order of the rows of {VECTORS}.")
    else:
        others = f"(Or {DESCRIPTIONS}, or {NAMES} with names only.)"
        findings.add(file, f"it is missing: add it, with a row for every class, seen and unseen. {others}")
