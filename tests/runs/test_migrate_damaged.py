"""Old runs and models that are damaged: migrating says so, and leaves nothing behind."""

from pathlib import Path

import pytest

from pren.errors import PrenError
from pren.methods.storage import MODEL_FILE, read_model, write_model
from pren.runs.migrate import migrate

OLD = Path(__file__).parent / "format_1" / "finished"


@pytest.mark.parametrize("params", [None, [], "x", 3])
def test_a_model_whose_parameters_are_none(tmp_path, params):
    tensors, facts = read_model(OLD / MODEL_FILE)
    (tmp_path / "old").mkdir()
    write_model(tmp_path / "old" / MODEL_FILE, tensors, {**facts, "params": params})
    with pytest.raises(PrenError, match="damaged"):
        migrate(tmp_path / "old", tmp_path / "new")
    assert not (tmp_path / "new").exists()
