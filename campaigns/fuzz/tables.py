"""Tables: any text comes back from a CSV file as it was."""

from __future__ import annotations

import csv
import os
from unittest import mock

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from campaigns.fuzz.command import SUCCESS
from campaigns.fuzz.templates import Workshop
from pren.foundation.files import from_cell, write_csv

Rows = list[list[str]]
# Surrogates cannot be written to any file, and no class name holds one; NUL is fit for csv.reader from Python 3.11 on.
_CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10) | st.sampled_from(
    ["\r", "\r\n", "\n", '"', '""', ",", '","', "\x85", "\u2028", "\ufeff", "=1+1", "'", "\\", " ", "", "1", "nan"]
)
CASES: SearchStrategy[Rows] = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(_CELLS, min_size=width, max_size=width), min_size=1, max_size=5)
)


def check(workshop: Workshop, case: Rows) -> str:
    """Write and read."""
    path = workshop.fresh() / "table.csv"
    with mock.patch.object(os, "fsync", return_value=None):
        write_csv(path, case[0], case[1:])
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert [[from_cell(cell) for cell in row] for row in rows] == case
    assert not any(cell[:1] and cell[0] in "=+-@\t\r\n" for row in rows for cell in row)
    return SUCCESS
