"""What `make audit` makes of what pip-audit says."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

AUDIT = Path(__file__).parents[1] / ".ci" / "audit.py"
SKIPPED = {"name": "a", "skip_reason": "not found"}
FINE = {"name": "b", "version": "1", "vulns": []}
HOLE = {"name": "c", "version": "2", "vulns": [{"id": "X-1", "fix_versions": ["3"]}]}


@pytest.mark.parametrize(
    ("said", "code", "told"),
    [
        ("", 0, "cannot be reached"),
        (json.dumps({"dependencies": [SKIPPED]}), 0, "cannot be reached"),
        (json.dumps({"dependencies": [SKIPPED, FINE]}), 0, "1 of 2 packages were compared, 0 known"),
        (json.dumps({"dependencies": [FINE, HOLE]}), 1, "c 2: X-1, mended in ['3']"),
    ],
)
def test_it_says_how_much_was_compared(said, code, told, monkeypatch, capsys):
    monkeypatch.setattr("subprocess.run", lambda *arguments, **options: SimpleNamespace(stdout=said))
    assert runpy.run_path(str(AUDIT))["main"]([]) == code
    assert told in capsys.readouterr().out
