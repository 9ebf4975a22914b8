"""Results on disk: one small JSON file per cell, which is computed once."""

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
    """Looks results up and keeps them in a folder that is there, and held against other writers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / CELLS

    def get(self, cell: Cell) -> Result | None:
        """The result of a cell, None if there is none yet; a `PrenError` if its file is damaged."""
        path = self._path(cell)
        if not path.exists():
            return None
        try:
            entry = _Entry.model_validate_json(read_bytes(path, MOST_BYTES))
            if entry.cell.key() != cell.key():
                raise ValueError("it is the result of another cell")
        except ValueError as error:
            raise PrenError("damaged", f"{path} is damaged: remove it, and the cell is computed again.") from error
        return entry.result

    @staticmethod
    def read(folder: Path) -> list[tuple[Cell, Result]]:
        """All cells in a folder that have been computed, whatever they are of; a `PrenError` if one is damaged."""
        found = []
        for path in sorted((folder / CELLS).glob("*.json")):
            try:
                entry = _Entry.model_validate_json(read_bytes(path, MOST_BYTES))
            except ValueError as error:
                raise PrenError("damaged", f"{path} is damaged: remove it, and the cell is computed again.") from error
            found.append((entry.cell, entry.result))
        return found

    def put(self, cell: Cell, result: Result) -> None:
        """Keep a result, whole or not at all."""
        self._folder.mkdir(exist_ok=True)
        write_json(self._path(cell), _Entry(cell=cell, result=result).model_dump(mode="json"))

    def _path(self, cell: Cell) -> Path:
        return self._folder / cell.file()
