"""How the signatures of a problem were made, so that a class can be added in the same way later."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from pren.data.describe.combine import root_mean_square
from pren.data.describe.encoders import encode
from pren.data.describe.table import Signatures
from pren.foundation.errors import PrenError, suggest
from pren.foundation.files import read_bytes

Row = NDArray[np.float64]
ALIKE = 0.01  # the largest relative change of a vector by rounding on another machine or version
RECIPE_FILE = "signatures.json"
MOST_BYTES = 1 << 28
MOST = float(np.finfo(np.float64).max)


class SourceRecipe(BaseModel):
    """One source of signatures.

    Attributes:
        kind: As in `Signatures.source`.
        mean: (m,) of the seen classes; replaces missing numbers.
        length: Root mean square of the seen classes' distances from that mean.
        weight: The weight of the source.
        attributes: (m,) the names of the columns; None if they have none.
        encoder: The text encoder for words; None for numbers.
        facts: The facts of the encoder.
        templates: The sentences for names, where classes only have names.
        texts: The descriptions of every class.
        probe: (m,) the encoder's vector of the first class, to recognise another encoder.
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
        """The recipe of unscaled signatures of one source."""
        known, words = made.values[seen], made.texts is not None
        largest = float(np.abs(known).max()) or 1.0  # or the squares of large numbers could overflow
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
        """A row from some attributes by name; the others get the mean of the seen classes."""
        names = self.attributes or []
        for name in given:
            if name not in names:
                raise PrenError("attribute-unknown", f"There is no attribute {name!r}. {suggest(name, names)}")
        return np.array([given.get(name, mean) for name, mean in zip(names, self.mean, strict=True)])

    def of_values(self, values: Row) -> Row:
        """A row from all of its numbers."""
        if values.shape != (len(self.mean),):
            raise PrenError("signature-size", f"A signature has {len(self.mean)} numbers here, not {values.size}.")
        return values

    def of_texts(self, texts: Sequence[str]) -> Row:
        """A row from words; `PrenError` if the encoder of the other rows is missing or has changed."""
        assert self.encoder is not None
        first, known = next(iter(self.texts.items()))
        made = encode(self.encoder, [first, "new"], [known, texts]).values
        probe = np.array(self.probe)
        if made.shape[1:] != probe.shape or np.linalg.norm(made[0] - probe) > ALIKE * np.linalg.norm(probe):
            raise PrenError(
                "encoder-other",
                f"The text encoder {self.encoder!r} has changed since the model was trained: its numbers for {first!r} "
                f"differ. Install its old version ({self.facts or 'not known'}), or fit again.",
            )
        row: Row = made[1]
        return row


class Recipe(BaseModel):
    """How signatures were made: from one source, or combined from several (see `combine`)."""

    model_config = ConfigDict(extra="forbid")

    sources: list[SourceRecipe] = Field(min_length=1)

    @classmethod
    def of(
        cls, sources: Sequence[Signatures], seen: NDArray[np.bool_], weights: Sequence[float] | None = None
    ) -> Recipe:
        """The recipe of the result of `combine` for the same arguments."""
        factors = [1.0] * len(sources) if weights is None else weights
        return cls(sources=[SourceRecipe.of(s, seen, w) for s, w in zip(sources, factors, strict=True)])

    def knowing(self, name: str, texts: Sequence[str]) -> Recipe:
        """The same with the texts of one more class."""
        words = [s.model_copy(update={"texts": {**s.texts, name: list(texts)}}) for s in self.sources if s.encoder]
        return Recipe(sources=[words.pop(0) if s.encoder else s for s in self.sources])

    def describe(
        self,
        name: str,
        values: Row | None = None,
        numbers: Mapping[str, float] | None = None,
        texts: Sequence[str] = (),
    ) -> Row:
        """The signature (m,) of one more class, before it is scaled to unit length.

        Args:
            name: Its name.
            values: All numbers of a source that is not words.
            numbers: Attributes by name.
            texts: Descriptions.

        Raises:
            PrenError: If a source gets no description, or no source uses one.
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
                raise PrenError("description-unused", f"{option} does not apply: classes are described by {kinds}.")
        if len(rows) == 1:
            return rows[0]
        parts = zip(self.sources, rows, strict=True)
        return np.concatenate([s.weight * (row - np.array(s.mean)) / s.length for s, row in parts])


def read_recipe(folder: Path) -> Recipe | None:
    """The recipe in the folder of a model, None if there is none; `PrenError` if it is damaged."""
    path = folder / RECIPE_FILE
    if not os.path.lexists(path):
        return None
    try:
        return Recipe.model_validate_json(read_bytes(path, MOST_BYTES))
    except ValueError as error:
        reason = (str(error).splitlines() or [""])[0]
        raise PrenError("damaged", f"{path} is damaged or was not written by pren: {reason}") from error


def in_templates(templates: Sequence[str], name: str) -> tuple[str, ...]:
    """The sentences for a class that only has a name: "001.Red_fox" is a Red fox."""
    words = name.replace("_", " ").split()
    plain = " ".join(words).lstrip("0123456789").lstrip(".-) ") or name
    return tuple(template.replace("{}", plain) for template in templates)
