"""The user's own CSV files, with every mistake noted by file and line."""

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
MORE = ",+"  # other columns may follow


class TableRow(NamedTuple):
    """A row of a table, and its first line."""

    line: int
    cells: list[str]


class Table(NamedTuple):
    """A CSV file."""

    header: TableRow
    rows: list[TableRow]  # rows with as many fields as the header, without empty lines
    misfits: list[TableRow]  # the other rows
    complete: bool  # whether every row could be read


def normal(text: str) -> str:
    """Text in the Unicode form NFC, to compare names: macOS writes file names in another form."""
    return unicodedata.normalize("NFC", text)


def read_table(folder: Path, file: str, header: str, findings: Findings) -> Table | None:
    """Read a CSV file; None if it cannot be read.

    Args:
        folder: The folder of the file.
        file: Its name.
        header: The required first line; after one that ends in ,+ others may follow, one that ends in … is an example.
        findings: Collects mistakes.
    """
    text = _read_text(folder, file, findings)
    if text is None:
        return None
    lines = _rows(text, file, findings)
    first = next(lines, TableRow(1, []))
    if first is None:
        return None
    if not first.cells:
        findings.add(file, f"it is empty: its first line must be {header.removesuffix(MORE)}.")
        return None
    if len(first.cells) == 1 and any(separator in first.cells[0] for separator in ";\t"):
        message = "its fields are separated by semicolons or tabs: save it with commas."
        findings.add(file, message, first.line)
        return None
    cells, wanted = [cell.strip().lower() for cell in first.cells], header.removesuffix(MORE).split(",")
    if not header.endswith("…") and cells[: len(wanted) if header.endswith(MORE) else None] != wanted:
        findings.add(file, f"the first line must be {header.removesuffix(MORE)}.", first.line)
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
        line = reader.line_num + 1  # where the row begins; its cells can hold line breaks
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:  # the reader continues with the next line
            is_open = "unexpected end" in str(error)
            reason = "a quotation mark is never closed" if is_open else str(error)
            findings.add(file, f"it is not valid CSV: {reason}.", line)
            yield None
            continue
        if cells:
            yield TableRow(line, list(map(from_cell, cells)))
