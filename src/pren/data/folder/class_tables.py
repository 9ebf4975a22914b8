"""The tables of classes: numbers in ``signatures.csv``, words in ``descriptions.csv``, names in ``classes.csv``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pren.data.arrays import read_numbers
from pren.data.folder.findings import Findings
from pren.data.tables import Table, TableRow, normal, read_table
from pren.foundation.errors import PrenError, quoted
from pren.problem import name_fault

SIGNATURES, DESCRIPTIONS, VECTORS, NAMES = "signatures.csv", "descriptions.csv", "vectors.npy", "classes.csv"
# The names for --signatures.
SOURCES = {"attributes": SIGNATURES, "descriptions": DESCRIPTIONS, "vectors": VECTORS, "names": NAMES}
LONGEST_TEXT = 10_000  # characters of a description: more than any encoder reads
MOST_ATTRIBUTES = 20_000
MISSING = ("", "?")  # cells for a missing number

Content = tuple[float, ...] | tuple[str, ...]  # numbers, NaN where one is missing, or descriptions


@dataclass(eq=False)
class ClassRows:
    """The content of one of the files."""

    file: str
    kind: str  # "attributes", "descriptions", "vectors" or "names"
    complete: bool  # whether it was read to its end, so that all its classes are known
    attributes: tuple[str, ...] = ()  # the names of its columns of numbers; none for words
    rows: dict[str, Content] = field(default_factory=dict)  # the content of each class whose rows are valid
    known: dict[str, int] = field(default_factory=dict)  # the line of every class, valid or not
    vectors: str | None = None  # the file with its numbers, if this one only has names

    @property
    def numeric(self) -> bool:
        """Whether it describes classes by numbers."""
        return bool(self.attributes) or self.vectors is not None

    def files(self) -> list[str]:
        """All files that it was read from."""
        return [self.file, *([self.vectors] if self.vectors else [])]

    def width(self) -> int:
        """How many numbers a class has."""
        return len(next(iter(self.rows.values()), ())) if self.numeric else 0

    def missing(self) -> int:
        """How many numbers are missing."""
        return sum(math.isnan(cell) for row in self.rows.values() for cell in row if isinstance(cell, float))


def read_class_rows(folder: Path, file: str, findings: Findings) -> ClassRows | None:
    """Read one of the files that describe the classes; a file of another name is read like ``signatures.csv``.

    Mistakes are noted in `findings`; None if the header cannot be read.
    """
    if file in (DESCRIPTIONS, NAMES):
        table = read_table(folder, file, "class,description" if file == DESCRIPTIONS else "class", findings)
        read = _words if file == DESCRIPTIONS else _no_content
        return None if table is None else _classes(file, table, (), read, findings)
    table = read_table(folder, file, "class,attribute,attribute,…", findings)
    if table is None or not _is_header(file, table.header, findings):
        return None
    return _classes(file, table, _attributes(file, table.header, findings), _numbers, findings)


def _classes(
    file: str,
    table: Table,
    attributes: tuple[str, ...],
    read: Callable[[str, TableRow, tuple[str, ...], Findings], Content | None],
    findings: Findings,
) -> ClassRows:
    """Read a table with a row for every class, or several rows of words."""
    kind = next((kind for kind, name in SOURCES.items() if name == file), "attributes")
    classes = ClassRows(file, kind, table.complete, attributes)
    for row in table.rows:
        if findings.full(file):
            classes.complete = False
            break
        name = normal(row.cells[0])
        fault = name_fault(name)
        if fault is None and file != DESCRIPTIONS and name in classes.known:
            fault = f"class {quoted(name)} is already in line {classes.known[name]}: give every class one row."
        if fault is not None:
            findings.add(file, fault, row.line)
        if name.strip():
            classes.known.setdefault(name, row.line)
        content = read(file, row, attributes, findings)
        if fault is None and content is not None:
            classes.rows[name] = (*classes.rows.get(name, ()), *content)
    for row in table.misfits:
        classes.known.setdefault(normal(row.cells[0]), row.line)
    if not classes.known and classes.complete:
        findings.add(file, "it has no class: add one row for every class, seen and unseen.")
    return classes


def _is_header(file: str, header: TableRow, findings: Findings) -> bool:
    first = header.cells[0]
    if normal(first).strip().lower() != "class":
        message = f"the first field must be 'class', not {quoted(first)}: the file begins with class,attribute,…"
    elif len(header.cells) == 1:
        message = "there is no attribute: the file begins with class,attribute,attribute,…"
    elif len(header.cells) > MOST_ATTRIBUTES:
        message = f"it has {len(header.cells) - 1} attributes: use at most {MOST_ATTRIBUTES}."
    else:
        return True
    findings.add(file, message, header.line)
    return False


def _attributes(file: str, header: TableRow, findings: Findings) -> tuple[str, ...]:
    names = tuple(normal(cell).strip() for cell in header.cells[1:])
    first: dict[str, int] = {}
    for column, name in enumerate(names, start=2):
        if not name:
            findings.add(file, f"the attribute in column {column} has no name.", header.line)
        elif name in first:
            message = f"columns {first[name]} and {column} are both named {quoted(name)}: rename one."
            findings.add(file, message, header.line)
        first.setdefault(name, column)
    return names


def _numbers(file: str, row: TableRow, attributes: tuple[str, ...], findings: Findings) -> tuple[float, ...] | None:
    """The signature in a row, NaN where a number is missing; None if it is not valid."""
    cells = [cell.strip() for cell in row.cells[1:]]
    numbers = tuple(_number(cell) for cell in cells)
    good = True
    for attribute, cell, number in zip(attributes, cells, numbers, strict=True):
        if cell not in MISSING and not math.isfinite(number):
            findings.add(file, f"column {quoted(attribute)} is {quoted(cell)}, not a finite number.", row.line)
            good = False
    if good and not any(numbers):  # NaN is true
        findings.add(file, "the signature is all zeros: fill it in, or remove the class.", row.line)
        good = False
    elif all(cell in MISSING for cell in cells):
        findings.add(file, "it has no numbers: fill them in, or remove the class.", row.line)
        good = False
    return numbers if good else None


def _number(cell: str) -> float:
    try:
        return float(cell) if "_" not in cell else math.nan  # 1_000 is a number only in Python
    except ValueError:
        return math.nan


def _words(file: str, row: TableRow, attributes: tuple[str, ...], findings: Findings) -> tuple[str, ...] | None:
    """The description in a row; None if it is not valid."""
    text = normal(row.cells[1]).strip()
    if not text:
        findings.add(file, f"class {quoted(row.cells[0])} has no description.", row.line)
    elif len(text) > LONGEST_TEXT:
        message = f"the description of {quoted(row.cells[0])} has {len(text)} characters: use at most {LONGEST_TEXT}."
        findings.add(file, message, row.line)
    elif any("\ud800" <= character <= "\udfff" for character in text):
        findings.add(file, f"the description of {quoted(row.cells[0])} is not valid text.", row.line)
    else:
        return (text,)
    return None


def _no_content(file: str, row: TableRow, attributes: tuple[str, ...], findings: Findings) -> tuple[str, ...]:
    """A class that only has a name."""
    return ()


def read_vectors(folder: Path, classes: ClassRows, findings: Findings) -> ClassRows:
    """Give the classes of ``classes.csv`` their vectors, in its order, and note mistakes in `findings`."""
    found = replace(classes, kind="vectors", rows={}, vectors=VECTORS)
    try:
        table = read_numbers(folder / VECTORS)
    except PrenError as error:
        findings.add(VECTORS, str(error).replace(str(folder / VECTORS), "it"))
        return found
    if table.ndim != 2 or not 1 <= table.shape[-1] <= MOST_ATTRIBUTES:
        message = f"it must have shape (classes, at most {MOST_ATTRIBUTES} numbers), not {table.shape}."
        findings.add(VECTORS, message)
    elif len(classes.rows) != len(classes.known) or not classes.complete:
        pass  # faults of the names are noted already, and rows cannot be assigned
    elif len(table) != len(classes.rows):
        message = f"it has {len(table)} rows, but {NAMES} has {len(classes.rows)} classes: give one row for each."
        findings.add(VECTORS, message)
    else:
        for number, (name, row) in enumerate(zip(classes.rows, table, strict=True)):
            fault = "holds NaN or infinite values" if not np.isfinite(row).all() else "is all zeros"
            if np.isfinite(row).all() and row.any():
                found.rows[name] = tuple(row.tolist())
            else:
                findings.add(VECTORS, f"row {number} (class {quoted(name)}) {fault}.")
    return found
