"""Vectors of the classes of a folder: ``vectors.npy`` has a row for every class of ``classes.csv``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from pren.data.arrays import read_numbers
from pren.data.folder.class_tables import MOST_ATTRIBUTES, NAMES, VECTORS, ClassRows
from pren.data.folder.findings import Findings
from pren.foundation.errors import PrenError, quoted


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
