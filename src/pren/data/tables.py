"""The user's own tables: CSV files read with every mistake noted, by file and line."""

from __future__ import annotations

import codecs
import csv
import io
import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pren.data.findings import Findings, quoted
from pren.errors import PrenError
from pren.files import read_bytes

SIGNATURES = "signatures.csv"
MOST_BYTES = 1 << 26
LONGEST_NAME = 255  # bytes, as for the names of folders


@dataclass(frozen=True)
class Row:
    """A row of a table, and the line that it begins in."""

    line: int
    cells: list[str]


@dataclass(frozen=True)
class Table:
    """A CSV file.

    Attributes:
        header: Its first row.
        rows: All others that have as many fields; empty lines are none.
        misfits: Those that have not.
        complete: Whether these are all rows, because each of them could be read.
    """

    header: Row
    rows: list[Row]
    misfits: list[Row]
    complete: bool


@dataclass(frozen=True, eq=False)
class Signatures:
    """The content of ``signatures.csv``.

    Attributes:
        attributes: (m,) the names of the columns.
        names: (L,) the classes whose row is right.
        values: (L, m) their rows.
        known: Every class that the file names, whatever else is wrong with its row.
        complete: Whether the file could be read to its end, so that what it does not name is not there.
    """

    attributes: list[str]
    names: list[str]
    values: NDArray[np.float64]
    known: dict[str, int]
    complete: bool


def normal(text: str) -> str:
    """Text in the one Unicode form (NFC) that names are compared in: macOS writes file names in another."""
    return unicodedata.normalize("NFC", text)


def read_table(folder: Path, file: str, example: str, findings: Findings) -> Table | None:
    """Read a CSV file; what is wrong with it goes to `findings`.

    Args:
        folder: Where the file is.
        file: Its name.
        example: What its header looks like, for messages.
        findings: Where mistakes are noted.

    Returns:
        None if there is nothing that can be read.
    """
    text = _read_text(folder, file, findings)
    if text is None:
        return None
    header: Row | None = None
    rows: list[Row] = []
    misfits: list[Row] = []
    complete = True
    for row in _rows(text, file, findings):
        if row is None:
            if header is None:
                return None
            complete = False
        elif header is None:
            header = row
        elif len(row.cells) == len(header.cells):
            rows.append(row)
        else:
            misfits.append(row)
            count = f"{len(row.cells)} field{'s' * (len(row.cells) != 1)}"
            message = f"it has {count}, but the header (line {header.line}) has {len(header.cells)}."
            findings.add(file, message, row.line)
        if findings.full(file):
            complete = False
            break
    if header is None:
        findings.add(file, f"it is empty: its first line must be {example}.")
        return None
    return Table(header, rows, misfits, complete)


def read_signatures(folder: Path, findings: Findings) -> Signatures | None:
    """Read the table of all classes; what is wrong with it goes to `findings`.

    Returns:
        None if not even its header can be read.
    """
    table = read_table(folder, SIGNATURES, "class,attribute,attribute,…", findings)
    if table is None or not _is_header(table.header, findings):
        return None
    attributes = _attributes(table.header, findings)
    known: dict[str, int] = {}
    names: list[str] = []
    values: list[list[float]] = []
    complete = table.complete
    for row in table.rows:
        if findings.full(SIGNATURES):
            complete = False
            break
        name = normal(row.cells[0])
        fault = name_fault(name)
        if fault is None and name in known:
            fault = f"class {quoted(name)} stands in line {known[name]} already: every class has one row."
        if fault is not None:
            findings.add(SIGNATURES, fault, row.line)
        if name.strip():
            known.setdefault(name, row.line)
        numbers = _numbers(row, attributes, findings)
        if fault is None and numbers is not None:
            names.append(name)
            values.append(numbers)
    for row in table.misfits:
        known.setdefault(normal(row.cells[0]), row.line)
    if not known and complete:
        findings.add(SIGNATURES, "it has no class: add one row for every class, seen and unseen.")
    array = np.array(values, dtype=np.float64).reshape(len(names), len(attributes))
    return Signatures(attributes, names, array, known, complete)


def name_fault(name: str) -> str | None:
    """What is wrong with the name of a class, None if nothing is: it must be able to be a folder's name."""
    if not name.strip():
        return "the class has no name."
    if name != name.strip():
        return f"class {quoted(name)} begins or ends with a blank: take it away."
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
        return f"class {quoted(name)} holds a line break or another control character: take it away."
    if "/" in name or "\\" in name or name in (".", ".."):
        return f"class {quoted(name)} cannot be the name of a folder: write it without / and \\."
    if len(name.encode()) > LONGEST_NAME:
        return f"class {quoted(name)} is longer than the name of a folder can be ({LONGEST_NAME} bytes)."
    return None


def _read_text(folder: Path, file: str, findings: Findings) -> str | None:
    try:
        content = read_bytes(folder / file, MOST_BYTES).removeprefix(codecs.BOM_UTF8)
    except PrenError as error:
        findings.add(file, str(error).replace(str(folder / file), "it"))
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        findings.add(file, "it is not UTF-8 text: save it as 'CSV UTF-8'.", line)
        return None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        findings.add(file, "it holds a null byte, so it is no text: save it as 'CSV UTF-8'.", line)
        return None
    return text


def _rows(text: str, file: str, findings: Findings) -> Iterator[Row | None]:
    """Every row that is not empty, None for one that cannot be read."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1  # in which the row begins: its cells may hold line breaks
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:  # the reader goes on with the next line
            reason = str(error)
            if "unexpected end" in reason:
                reason = "a quotation mark is opened and never closed"
            findings.add(file, f"it is not valid CSV: {reason}.", line)
            yield None
            continue
        if cells:
            yield Row(line, cells)


def _is_header(header: Row, findings: Findings) -> bool:
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


def _attributes(header: Row, findings: Findings) -> list[str]:
    names = [normal(cell).strip() for cell in header.cells[1:]]
    first: dict[str, int] = {}
    for column, name in enumerate(names, start=2):
        if not name:
            findings.add(SIGNATURES, f"the attribute in column {column} has no name.", header.line)
        elif name in first:
            message = (
                f"attribute {quoted(name)} stands twice, in columns {first[name]} and {column}: names must differ."
            )
            findings.add(SIGNATURES, message, header.line)
        first.setdefault(name, column)
    return names


def _numbers(row: Row, attributes: list[str], findings: Findings) -> list[float] | None:
    """The signature in a row, None if it is not one."""
    numbers: list[float] = []
    right = True
    for attribute, cell in zip(attributes, row.cells[1:], strict=True):
        number = _number(cell)
        if number is None or not math.isfinite(number):
            what = "is empty" if not cell.strip() else f"is {quoted(cell)}, not a number"
            message = what if number is None else f"is {quoted(cell)}: NaN and infinite values say nothing"
            findings.add(SIGNATURES, f"column {quoted(attribute)} {message}.", row.line)
            right = False
        else:
            numbers.append(number)
    if right and not any(numbers):
        message = "the signature is all zeros, so nothing tells this class from another: describe it, or leave it out."
        findings.add(SIGNATURES, message, row.line)
        right = False
    return numbers if right else None


def _number(cell: str) -> float | None:
    try:
        return float(cell) if "_" not in cell else None  # 1_000 is a number to Python alone
    except ValueError:
        return None
