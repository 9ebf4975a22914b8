"""CSV files of the user's own, read with every mistake noted by file and line."""

from __future__ import annotations

import codecs
import csv
import io
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pren.data.folder.findings import Findings
from pren.foundation.errors import PrenError
from pren.foundation.files import from_cell, read_bytes

MOST_BYTES = 1 << 26


class TableRow(NamedTuple):
    """A row of a table, and the line that it begins in."""

    line: int
    cells: list[str]


class Table(NamedTuple):
    """A CSV file."""

    header: TableRow
    rows: list[TableRow]  # those with as many fields as the header; empty lines are none
    misfits: list[TableRow]  # the others
    complete: bool  # whether these are all rows, because each of them could be read


def normal(text: str) -> str:
    """Text in the one Unicode form (NFC) that names are compared in: macOS writes file names in another."""
    return unicodedata.normalize("NFC", text)


def read_table(folder: Path, file: str, header: str, findings: Findings) -> Table | None:
    """Read a CSV file; what is wrong with it goes to `findings`.

    Args:
        folder: Where the file is.
        file: Its name.
        header: What its first line must be; one that ends in … is an example.
        findings: Where mistakes are noted.

    Returns:
        None if there is nothing that can be read.
    """
    text = _read_text(folder, file, findings)
    if text is None:
        return None
    lines = _rows(text, file, findings)
    first = next(lines, TableRow(1, []))
    if first is None:
        return None
    if not first.cells:
        findings.add(file, f"it is empty: its first line must be {header}.")
        return None
    if not header.endswith("…") and [cell.strip().lower() for cell in first.cells] != header.split(","):
        findings.add(file, f"the first line must be {header}.", first.line)
        return None
    rows: list[TableRow] = []
    misfits: list[TableRow] = []
    complete = True
    for row in lines:
        if row is None:
            complete = False
        elif len(row.cells) == len(first.cells):
            rows.append(row)
        else:
            misfits.append(row)
            fields = f"{len(row.cells)} field{'s' * (len(row.cells) != 1)}"
            findings.add(file, f"it has {fields}, but the header (line {first.line}) has {len(first.cells)}.", row.line)
    return Table(first, rows, misfits, complete and not findings.full(file))


def _read_text(folder: Path, file: str, findings: Findings) -> str | None:
    try:
        content = read_bytes(folder / file, MOST_BYTES).removeprefix(codecs.BOM_UTF8)
    except PrenError as error:
        findings.add(file, str(error).replace(str(folder / file), "it"))
        return None
    try:
        text, wrong = content.decode(), content.find(b"\0")
    except UnicodeDecodeError as error:
        text, wrong = "", error.start
    if wrong < 0:
        return text
    findings.add(file, "it is not UTF-8 text: save it as 'CSV UTF-8'.", content.count(b"\n", 0, wrong) + 1)
    return None


def _rows(text: str, file: str, findings: Findings) -> Iterator[TableRow | None]:
    """Every row that is not empty, None for one that cannot be read."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while not findings.full(file):
        line = reader.line_num + 1  # in which the row begins: its cells may hold line breaks
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:  # the reader goes on with the next line
            is_open = "unexpected end" in str(error)
            reason = "a quotation mark is opened and never closed" if is_open else str(error)
            findings.add(file, f"it is not valid CSV: {reason}.", line)
            yield None
            continue
        if cells:
            yield TableRow(line, list(map(from_cell, cells)))
