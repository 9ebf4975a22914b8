"""``pren predict`` in several processes: the same table as of one."""

import os
import subprocess
import sys

import numpy as np
import pytest

from pren.cli import __main__ as command_line
from pren.methods.rivals.eszsl import ESZSL

PREN = (sys.executable, "-m", "pren.cli")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "pren.cli")
pytestmark = pytest.mark.slow


@pytest.fixture
def predict(make_problem, tmp_path):
    """Label 9,000 vectors: three parts."""
    ESZSL().fit(make_problem()).save(tmp_path / "model")
    np.save(tmp_path / "new.npy", np.random.default_rng(0).normal(size=(9000, 5)).astype(np.float32))

    def run(out, *arguments, command=PREN):
        return subprocess.run(
            [*command, "predict", "model", "new.npy", "--out", out, *arguments],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )

    return run


def test_torchrun_gives_the_same_table(predict, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pren", "predict", "model", "new.npy", "--out", "one.csv"])
    with pytest.raises(SystemExit, match="0"):
        command_line.main()
    result = predict("torchrun.csv", command=TORCHRUN)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "9000 predictions are in torchrun.csv.\n"
    assert (tmp_path / "torchrun.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
    assert not list(tmp_path.glob("*.parts"))


def test_what_goes_wrong_in_one_goes_wrong_in_all(predict, tmp_path):
    """Of processes that we start ourselves: `test_commands.py` has some that succeed."""
    (tmp_path / "two.csv.parts").mkdir()
    (tmp_path / "two.csv.parts" / "precious").write_text("mine")
    result = predict("two.csv", "--devices", "2")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("Error [") == 1
    assert (tmp_path / "two.csv.parts" / "precious").read_text() == "mine"
