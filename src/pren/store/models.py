"""Load a model from a run folder, or from a folder that `Method.save` wrote."""

from __future__ import annotations

from pathlib import Path

from pren.methods import storage
from pren.methods.base import Method
from pren.store.folder import RunFolder


def load_model(folder: str | Path) -> Method:
    """Load the model of a run folder, or of a folder that `Method.save` or `pren classes` wrote."""
    saved = (Path(folder) / storage.MODEL_FILE).is_file() and not RunFolder(folder).holds_run()
    return storage.load_model(folder) if saved else RunFolder.open(folder).model()
