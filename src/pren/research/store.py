"""Results on disk: one small JSON file per cell."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pren.foundation.errors import PrenError
from pren.foundation.files import read_bytes, write_json
from pren.research.cells import Cell, Result
from pren.research.folder import CELLS

MOST_BYTES = 1 << 20


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    cell: Cell
    result: Result


class Store:
    """Reads and writes results in an existing folder that is locked against other writers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / CELLS

    def get(self, cell: Cell) -> Result | None:
        """The result of a cell; None if there is none yet."""
        path = self._path(cell)
        if not path.exists():
            return None
        return _read(path, cell).result

    @staticmethod
    def read(folder: Path) -> list[tuple[Cell, Result]]:
        """All computed cells in a folder."""
        entries = [_read(path) for path in sorted((folder / CELLS).glob("*.json"))]
        return [(entry.cell, entry.result) for entry in entries]

    def put(self, cell: Cell, result: Result) -> None:
        """Write a result, whole or not at all."""
        self._folder.mkdir(exist_ok=True)
        write_json(self._path(cell), _Entry(cell=cell, result=result).model_dump(mode="json"))

    def _path(self, cell: Cell) -> Path:
        return self._folder / cell.file()


def _read(path: Path, cell: Cell | None = None) -> _Entry:
    """Read a file; a `PrenError` if it is damaged, or of another cell than the given one."""
    try:
        entry = _Entry.model_validate_json(read_bytes(path, MOST_BYTES))
        if cell is not None and entry.cell.key() != cell.key():
            raise ValueError("it is the result of another cell")
    except ValueError as error:
        raise PrenError("damaged", f"{path} is damaged: remove it, and the cell is computed again.") from error
    return entry
