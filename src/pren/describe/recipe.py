"""How the signatures of a problem were made, so that one more class can be described in the same way later."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from pren.describe.combine import root_mean_square
from pren.describe.encoders import encode
from pren.describe.table import Signatures
from pren.foundation.errors import PrenError, suggest
from pren.foundation.files import read_bytes

Row = NDArray[np.float64]
ALIKE = 0.01  # what the rounding of another machine or version can change in a vector, against its length
RECIPE_FILE = "signatures.json"
MOST_BYTES = 1 << 28
MOST = float(np.finfo(np.float64).max)


class SourceRecipe(BaseModel):
    """One source of signatures.

    Attributes:
        kind: As `Signatures.source` has it.
        mean: (m,) of the seen classes: stands for a number that nobody knows.
        length: Root mean square of the seen classes' distances from that mean.
        weight: What the source counts beside others.
        attributes: (m,) the names of the columns; None if they have none.
        encoder: The text encoder of words; None for numbers.
        facts: What the encoder said of itself.
        templates: What a name was put into, where classes are described by their names alone.
        texts: The descriptions of every class.
        probe: (m,) the encoder's vector of the first class: another encoder gives another one.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    kind: str
    mean: list[float] = Field(min_length=1)
    length: float = Field(gt=0)
    weight: float = Field(1.0, gt=0)
    attributes: list[str] | None = None
    encoder: str | None = None
    facts: dict[str, Any] = {}
    templates: list[str] = []
    texts: dict[str, list[str]] = {}
    probe: list[float] = []

    @classmethod
    def of(cls, made: Signatures, seen: NDArray[np.bool_], weight: float) -> SourceRecipe:
        """Of signatures as their source gives them."""
        known, words = made.values[seen], made.texts is not None
        largest = float(np.abs(known).max()) or 1.0  # numbers may be so large that their squares are not
        mean = (known / len(known)).sum(axis=0)
        length = largest * root_mean_square(known / largest - mean / largest)
        return cls(
            kind=str(made.source["kind"]),
            mean=mean.tolist(),
            length=min(length, MOST) or 1.0,
            weight=weight,
            attributes=None if made.attributes is None else list(made.attributes),
            encoder=made.source.get("encoder"),
            facts=made.source.get("facts", {}),
            templates=made.source.get("templates", []),
            texts={name: list(texts) for name, texts in zip(made.names, made.texts or (), strict=words)},
            probe=made.values[0].tolist() if words else [],
        )

    def of_numbers(self, given: Mapping[str, float]) -> Row:
        """A row from some attributes by name; the others are as they are on average."""
        names = self.attributes or []
        for name in given:
            if name not in names:
                raise PrenError("attribute-unknown", f"There is no attribute {name!r}. {suggest(name, names)}")
        return np.array([given.get(name, mean) for name, mean in zip(names, self.mean, strict=True)])

    def of_values(self, values: Row) -> Row:
        """A row from all of its numbers."""
        if values.shape != (len(self.mean),):
            raise PrenError(
                "signature-size", f"A class is described by {len(self.mean)} numbers here, not by {values.size}."
            )
        return values

    def of_texts(self, texts: Sequence[str]) -> Row:
        """A row from words, by the encoder that made the others.

        Raises:
            PrenError: If that encoder is not there, or gives other numbers than it did.
        """
        assert self.encoder is not None
        first, known = next(iter(self.texts.items()))
        made = encode(self.encoder, [first, "new"], [known, texts]).values
        probe = np.array(self.probe)
        if made.shape[1:] != probe.shape or np.linalg.norm(made[0] - probe) > ALIKE * np.linalg.norm(probe):
            raise PrenError(
                "encoder-other",
                f"The text encoder {self.encoder!r} is not the one that the model was trained with: it gives other "
                f"numbers for {first!r}. Install what it was ({self.facts or 'nobody knows which'}), or fit again.",
            )
        row: Row = made[1]
        return row


class Recipe(BaseModel):
    """How signatures were made: of one source as it gives them, or of several side by side (see `combine`)."""

    model_config = ConfigDict(extra="forbid")

    sources: list[SourceRecipe] = Field(min_length=1)

    @classmethod
    def of(
        cls, sources: Sequence[Signatures], seen: NDArray[np.bool_], weights: Sequence[float] | None = None
    ) -> Recipe:
        """The recipe of what `combine` makes of the same."""
        factors = [1.0] * len(sources) if weights is None else weights
        return cls(sources=[SourceRecipe.of(s, seen, w) for s, w in zip(sources, factors, strict=True)])

    def knowing(self, name: str, texts: Sequence[str]) -> Recipe:
        """The same with the words for one more class."""
        words = [s.model_copy(update={"texts": {**s.texts, name: list(texts)}}) for s in self.sources if s.encoder]
        return Recipe(sources=[words.pop(0) if s.encoder else s for s in self.sources])

    def describe(
        self,
        name: str,
        values: Row | None = None,
        numbers: Mapping[str, float] | None = None,
        texts: Sequence[str] = (),
    ) -> Row:
        """The signature of one more class, (m,), before rows are brought to unit length.

        Args:
            name: What it is called.
            values: All numbers of the one source that is neither attributes nor words, or of the attributes.
            numbers: Attributes by name.
            texts: Descriptions.

        Raises:
            PrenError: If a source is left without anything, or something is said that no source is about.
        """
        left = {"--signature": values is not None, "--set": bool(numbers), "--description": bool(texts)}
        rows = []
        for source in self.sources:
            if source.encoder is not None and source.templates and not texts:
                row = source.of_texts(in_templates(source.templates, name))
            elif source.encoder is not None:
                if not texts:
                    raise PrenError("description-missing", "Classes are described in words here: add --description.")
                row, left["--description"] = source.of_texts(texts), False
            elif source.attributes is not None and numbers:
                row, left["--set"] = source.of_numbers(numbers), False
            elif values is not None and left["--signature"]:
                row, left["--signature"] = source.of_values(values), False
            else:
                how = "--attributes NAME=NUMBER or --signature FILE" if source.attributes else "--signature FILE"
                raise PrenError("description-missing", f"The {source.kind} of {name!r} are missing: add {how}.")
            rows.append(row)
        for option, unused in left.items():
            if unused:
                kinds = ", ".join(source.kind for source in self.sources)
                raise PrenError("description-unused", f"{option} has no use here: classes are described by {kinds}.")
        if len(rows) == 1:
            return rows[0]
        parts = zip(self.sources, rows, strict=True)
        return np.concatenate([s.weight * (row - np.array(s.mean)) / s.length for s, row in parts])


def read_recipe(folder: Path) -> Recipe | None:
    """The recipe that stands beside a model; None if there is none.

    Raises:
        PrenError: If it is damaged.
    """
    path = folder / RECIPE_FILE
    if not os.path.lexists(path):
        return None
    try:
        return Recipe.model_validate_json(read_bytes(path, MOST_BYTES))
    except ValueError as error:
        reason = (str(error).splitlines() or [""])[0]
        raise PrenError("damaged", f"{path} is damaged or was not written by pren: {reason}") from error


def in_templates(templates: Sequence[str], name: str) -> tuple[str, ...]:
    """The sentences for a class of which nothing but its name is known: "001.Red_fox" is a Red fox."""
    words = name.replace("_", " ").split()
    plain = " ".join(words).lstrip("0123456789").lstrip(".-) ") or name
    return tuple(template.replace("{}", plain) for template in templates)
