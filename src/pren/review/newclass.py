"""A class that is missing: which photographs a description would catch, and to add it to the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from pren.data.describe import Recipe
from pren.data.folder.class_tables import DESCRIPTIONS, SIGNATURES
from pren.data.folder.findings import Findings
from pren.data.tables import normal, read_table
from pren.foundation.errors import PrenError
from pren.foundation.files import csv_text, write_bytes
from pren.label.predictor import Predictor
from pren.problem import ClassTable, name_fault
from pren.review.session import Session
from pren.runs.classes import Description, Model, add_class

SHOWN = 60


class Described(BaseModel):
    """A new class: its name, and a sentence or its attributes."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=200)
    text: str = Field("", max_length=10_000)
    attributes: dict[str, float] = Field({}, max_length=10_000)


def try_class(session: Session, new: Described) -> dict[str, Any]:
    """The photographs whose best class would be the new one, the best first, and which labels they have now."""
    outcome = session.latest.outcome
    assert outcome is not None
    assert outcome.answers is not None
    assert outcome.answers.names is not None
    recipe = Recipe.model_validate(outcome.problem.recipe)
    said = Description(numbers=new.attributes, texts=[new.text] if new.text.strip() else [])
    model = add_class(Model(outcome.method, recipe), new.name, said).method
    found = Predictor(model).label(outcome.problem.pool, 1)
    caught = np.flatnonzero(found.labels == normal(new.name))
    caught = caught[np.argsort(-found.scores[caught, 0], kind="stable")]
    ids = [session.place[outcome.answers.names[place]] for place in caught.tolist()]
    before = session.snapshot.labels[ids]
    rows, counts = np.unique(before[before >= 0], return_counts=True)
    names = session.snapshot.table.names
    lost = sorted(zip(counts.tolist(), rows.tolist(), strict=True), reverse=True)
    return {"count": len(ids), "photographs": ids[:SHOWN], "from": [[names[row], count] for count, row in lost]}


def keep_class(session: Session, new: Described) -> None:
    """Write a class into the tables of the data, and fit again."""
    name = normal(new.name)
    if fault := name_fault(name):
        raise PrenError("class-name", f"A class cannot be added: {fault}")
    if name in session.snapshot.table.names:
        raise PrenError("class-name", f"There is a class {name!r} already.")
    files = set(session.problem.source["files"]) & {DESCRIPTIONS, SIGNATURES}
    rows: dict[str, list[Any]] = {}
    if DESCRIPTIONS in files and new.text.strip():
        rows[DESCRIPTIONS] = [name, new.text.strip()]
    if SIGNATURES in files and new.attributes:
        rows[SIGNATURES] = _numbers(session, name, new.attributes)
    if not files or rows.keys() != files:
        wanted = " and ".join(sorted(files)) or "the tables of the data"
        raise PrenError("description-missing", f"The classes are described in {wanted}: add the class there.")
    recipe = Recipe.model_validate(session.problem.recipe)
    texts = [new.text.strip()] if new.text.strip() else []
    table = _with_class(session.problem.classes, name, recipe.describe(name, None, new.attributes, texts))
    for file, row in rows.items():
        path = session.data / file
        content = path.read_bytes()
        write_bytes(path, content + (b"" if content.endswith(b"\n") else b"\n") + csv_text([row]).encode())
    session.use_classes(table, recipe.knowing(name, texts).model_dump(mode="json"))


def _with_class(known: ClassTable, name: str, signature: NDArray[np.float64]) -> ClassTable:
    """A table with one more unseen class, at its end."""
    if known.normalised and signature.any():
        signature = signature / np.abs(signature).max()
        signature = signature / np.linalg.norm(signature)
    rows = np.vstack([known.signatures, signature])
    table = ClassTable.build(
        (*known.names, name), rows, np.append(known.seen, False), normalise=False, attributes=known.attributes
    )
    return replace(table, normalised=known.normalised)


def _numbers(session: Session, name: str, attributes: dict[str, float]) -> list[Any]:
    table = read_table(session.data, SIGNATURES, "class,attribute,attribute,…", Findings())
    header = [] if table is None else [cell.strip() for cell in table.header.cells[1:]]
    if unknown := sorted(attributes.keys() - set(header)):
        raise PrenError("attribute-unknown", f"{SIGNATURES} has no column {unknown[0]!r}.")
    return [name, *(attributes.get(column, "") for column in header)]
