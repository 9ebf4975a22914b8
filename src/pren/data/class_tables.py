"""What the user says of every class: numbers in ``signatures.csv``, or words in ``descriptions.csv``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pren.data.findings import Findings
from pren.data.tables import Table, TableRow, normal, read_table
from pren.errors import PrenError, quoted
from pren.problem import name_fault
from pren.signatures import ENCODERS, Signatures, encode, source_names

SIGNATURES, DESCRIPTIONS = "signatures.csv", "descriptions.csv"
SOURCES = {"attributes": SIGNATURES, "descriptions": DESCRIPTIONS}  # by the names that --signatures takes

Content = tuple[float, ...] | str  # what a row says of its class


@dataclass(eq=False)
class ClassRows:
    """The content of one of the two files."""

    file: str
    complete: bool  # whether it could be read to its end, so that a class it does not name is not there
    attributes: tuple[str, ...] = ()  # the names of its columns of numbers; none for words
    rows: dict[str, Content] = field(default_factory=dict)  # what it says of each class whose row is right
    known: dict[str, int] = field(default_factory=dict)  # the line of every class that it names, right or not

    def signatures(self, encoder: str | None) -> Signatures:
        """The signatures of these classes; words need a text encoder."""
        names, rows = tuple(self.rows), list(self.rows.values())
        if self.attributes:
            return Signatures(names, np.array(rows), {"kind": "attributes", "file": self.file}, self.attributes)
        if encoder is None:
            raise PrenError(needs_encoder())
        return encode(encoder, names, [str(text) for text in rows], file=self.file)


def needs_encoder() -> str:
    """What to say to somebody who has words and no encoder."""
    installed = ", ".join(ENCODERS) or "none"
    how = f"name one with --option encoder=NAME (installed: {installed}), or give {SIGNATURES}"
    return f"{DESCRIPTIONS} needs a text encoder: {how}."


def wants_words(folder: Path, encoder: str | None, wanted: str | None) -> bool:
    """Whether the words are meant, even where there are numbers too.

    Raises:
        PrenError: If a source is wanted that the folder has not, or several are, or an encoder for numbers.
    """
    if wanted is None:
        return encoder is not None
    has = [f"{name} ({file})" for name, file in SOURCES.items() if os.path.lexists(folder / file)]
    names = source_names(wanted)
    if len(names) > 1:
        raise PrenError(f"A folder of photographs takes one source of signatures, not {wanted!r}: name one of them.")
    if not any(said.startswith(f"{names[0]} (") for said in has):
        missing = f": there is no {folder / SOURCES[names[0]]}" if names[0] in SOURCES else ""
        raise PrenError(f"{folder} has no signatures {names[0]!r}{missing}. It has {', '.join(has) or 'none'}.")
    words = SOURCES[names[0]] == DESCRIPTIONS
    if encoder is not None and not words:
        raise PrenError(f"The text encoder {encoder!r} is for descriptions, not for {wanted!r}: leave one of them out.")
    return words


def read_class_rows(folder: Path, words: bool, findings: Findings) -> ClassRows | None:
    """Read the file that describes the classes: the words if they are meant, or if there is nothing else.

    What is wrong with it goes to `findings`; None if not even its header can be read.
    """
    has_numbers, has_words = (os.path.lexists(folder / file) for file in (SIGNATURES, DESCRIPTIONS))
    if words and not has_words:
        findings.add(DESCRIPTIONS, "it is missing: it holds class,description for the text encoder.")
    elif has_words and (words or not has_numbers):
        table = read_table(folder, DESCRIPTIONS, "class,description", findings)
        return None if table is None else _classes(DESCRIPTIONS, table, (), _words, findings)
    elif has_numbers:
        table = read_table(folder, SIGNATURES, "class,attribute,attribute,…", findings)
        if table is not None and _is_header(table.header, findings):
            return _classes(SIGNATURES, table, _attributes(table.header, findings), _numbers, findings)
    else:
        findings.add(SIGNATURES, f"it is missing: it has a row for every class, seen and unseen. (Or {DESCRIPTIONS}.)")
    return None


def _classes(
    file: str,
    table: Table,
    attributes: tuple[str, ...],
    read: Callable[[TableRow, tuple[str, ...], Findings], Content | None],
    findings: Findings,
) -> ClassRows:
    """Read a table with a row for every class."""
    classes = ClassRows(file, table.complete, attributes)
    for row in table.rows:
        if findings.full(file):
            classes.complete = False
            break
        name = normal(row.cells[0])
        fault = name_fault(name)
        if fault is None and name in classes.known:
            fault = f"class {quoted(name)} stands in line {classes.known[name]} already: every class has one row."
        if fault is not None:
            findings.add(file, fault, row.line)
        if name.strip():
            classes.known.setdefault(name, row.line)
        content = read(row, attributes, findings)
        if fault is None and content is not None:
            classes.rows[name] = content
    for row in table.misfits:
        classes.known.setdefault(normal(row.cells[0]), row.line)
    if not classes.known and classes.complete:
        findings.add(file, "it has no class: add one row for every class, seen and unseen.")
    return classes


def _is_header(header: TableRow, findings: Findings) -> bool:
    first = header.cells[0]
    if len(header.cells) == 1 and any(separator in first for separator in ";\t"):
        message = "its fields seem to be separated by semicolons or tabs: separate them by commas."
    elif normal(first).strip().lower() != "class":
        message = f"the first field must be 'class', not {quoted(first)}: the file begins with class,attribute,…"
    elif len(header.cells) == 1:
        message = "there is no attribute: the file begins with class,attribute,attribute,…"
    else:
        return True
    findings.add(SIGNATURES, message, header.line)
    return False


def _attributes(header: TableRow, findings: Findings) -> tuple[str, ...]:
    names = tuple(normal(cell).strip() for cell in header.cells[1:])
    first: dict[str, int] = {}
    for column, name in enumerate(names, start=2):
        if not name:
            findings.add(SIGNATURES, f"the attribute in column {column} has no name.", header.line)
        elif name in first:
            message = f"attribute {quoted(name)} stands twice, in columns {first[name]} and {column}."
            findings.add(SIGNATURES, message, header.line)
        first.setdefault(name, column)
    return names


def _numbers(row: TableRow, attributes: tuple[str, ...], findings: Findings) -> tuple[float, ...] | None:
    """The signature in a row, None if it is not one."""
    numbers = tuple(_number(cell) for cell in row.cells[1:])
    for attribute, cell, number in zip(attributes, row.cells[1:], numbers, strict=True):
        if not math.isfinite(number):
            findings.add(SIGNATURES, f"column {quoted(attribute)} is {quoted(cell)}, not a finite number.", row.line)
    if not any(numbers):
        message = "the signature is all zeros, so nothing tells this class from another: describe it, or leave it out."
        findings.add(SIGNATURES, message, row.line)
    return numbers if any(numbers) and all(map(math.isfinite, numbers)) else None


def _number(cell: str) -> float:
    try:
        return float(cell) if "_" not in cell else math.nan  # 1_000 is a number to Python alone
    except ValueError:
        return math.nan


def _words(row: TableRow, attributes: tuple[str, ...], findings: Findings) -> str | None:
    """The description in a row, None if it is empty."""
    text = normal(row.cells[1]).strip()
    if not text:
        findings.add(DESCRIPTIONS, f"class {quoted(row.cells[0])} has no description.", row.line)
    return text or None
