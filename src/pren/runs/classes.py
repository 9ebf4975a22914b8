"""Add a class to a fitted model, or remove one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.data.arrays import read_vector
from pren.data.describe import RECIPE_FILE, Recipe, read_recipe
from pren.data.folder.class_tables import LONGEST_TEXT, read_class_rows
from pren.data.folder.findings import Findings
from pren.data.tables import normal
from pren.foundation.errors import PrenError
from pren.foundation.files import make_folder, new_folder, write_json
from pren.methods.base import Method
from pren.methods.storage import MODEL_FILE, load_model
from pren.problem import name_fault
from pren.store.folder import RunFolder

Vector = NDArray[np.float64]


class Model(NamedTuple):
    """A fitted method, and how its classes are described; None if that is not known."""

    method: Method
    recipe: Recipe | None


class Description(NamedTuple):
    """The description of a new class.

    Attributes:
        signature: A ``.npy`` file with all numbers, or a table like ``signatures.csv`` with the class.
        numbers: Attributes by name.
        texts: Sentences.
    """

    signature: Path | None = None
    numbers: Mapping[str, float] = {}
    texts: Sequence[str] = ()


def open_model(folder: str | Path) -> Model:
    """The model of a run, or of a folder that `Method.save` or `add_class` wrote."""
    path = Path(folder)
    saved = (path / MODEL_FILE).is_file() and not RunFolder(path).holds_run()
    method = load_model(path) if saved else RunFolder.open(path).model()
    return Model(method, read_recipe(path))


def add_class(model: Model, name: str, said: Description) -> Model:
    """A model with one more class.

    Raises:
        PrenError: If the name or the description cannot be used, or the method cannot add a class.
    """
    name = normal(name)
    if fault := name_fault(name):
        raise PrenError("class-name", f"A class cannot be added: {fault}")
    if any(len(text) > LONGEST_TEXT or not text.strip() for text in said.texts):
        raise PrenError("description-length", f"A description has between 1 and {LONGEST_TEXT} characters.")
    method, recipe = model
    values, numbers = _read(said, name)
    if recipe is None:
        if values is None or said.texts or numbers:
            raise PrenError(
                "recipe-unknown", "The model does not know what its numbers mean: give them all with --signature FILE."
            )
        return Model(method.with_class(name, values), None)
    row = recipe.describe(name, values, numbers, said.texts)
    return Model(method.with_class(name, row), recipe.knowing(name, said.texts))


def remove_class(model: Model, name: str) -> Model:
    """A model with one class less."""
    return Model(model.method.without_class(normal(name)), model.recipe)


def save_beside(model: Model, out: Path) -> None:
    """Write a model to a new folder, without forecast and confidence, which were measured for the old model."""
    if out.exists() or out.is_symlink():
        raise PrenError("out-taken", f"{out} already exists: choose another --out or remove it.")
    make_folder(out.absolute().parent)
    with new_folder(out) as folder:
        model.method.save(folder)
        if model.recipe is not None:
            write_json(folder / RECIPE_FILE, model.recipe.model_dump(mode="json"))


def _read(said: Description, name: str) -> tuple[Vector | None, dict[str, float]]:
    """All numbers of the class, or its attributes by name."""
    numbers, path = dict(said.numbers), said.signature
    if path is None:
        return None, numbers
    if path.suffix.lower() != ".csv":
        return read_vector(path), numbers
    findings = Findings()
    table = read_class_rows(path.absolute().parent, path.name, findings)
    for finding in findings.listed():
        raise PrenError("signatures-table", str(finding))
    if table is None or name not in table.rows:
        raise PrenError("class-missing", f"{path} has no row for {name!r}.")
    row = dict(zip(table.attributes, map(float, table.rows[name]), strict=True))
    return None, {key: number for key, number in row.items() if not np.isnan(number)} | numbers
