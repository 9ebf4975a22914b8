"""The real command, in processes of its own: what only they can show."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pren.foundation.version import __version__

PREN = [sys.executable, "-m", "pren.cli"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads()), "COLUMNS": "200"}
LONG = ("heads=4", "dim=4", "rounds=12", "initial_batches=20", "batches=20", "batch_size=16", "hidden=[16]")
SAME = ("model.safetensors", "history.csv", "pseudo_labels.csv", "predictions.csv", "metrics.json")
pytestmark = pytest.mark.slow


def run(*arguments, command=PREN):
    return subprocess.run(
        [*command, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=250, check=False
    )


def test_help_does_not_wait_for_torch():
    program = """
import sys
import pren
from pren.cli.__main__ import app

for arguments in (["--help"], ["--version"], *([verb, "--help"] for verb in sys.argv[1:])):
    app(arguments, standalone_mode=False)
heavy = {"torch", "numpy", "scipy", "sklearn", "pydantic", "safetensors", "PIL", "lightning_fabric"}
print("loaded:", *sorted(heavy & set(sys.modules)))
"""
    result = run(program, "demo", "fit", "evaluate", "predict", "list", "show", command=[sys.executable, "-c"])
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Usage:") == 7
    assert "torch" not in result.stdout.rpartition("loaded:")[2]


def test_the_command_is_installed():
    script = Path(sys.executable).with_name("pren")
    if not script.exists():
        pytest.skip("the package is not installed here")
    assert run("--version", command=[str(script)]).stdout == f"pren {__version__}\n"


def test_exit_codes_and_streams_without_any_data():
    fine, wrong = run("--version"), run("fit", "x", "--node-rank=1")
    assert (fine.returncode, fine.stdout, fine.stderr) == (0, f"pren {__version__}\n", "")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("Error [option-value]: ")
    assert len(wrong.stderr.splitlines()) == 1


def test_ctrl_c_and_going_on_to_the_very_same_end(good, data, tmp_path):
    settings = [f"--set={setting}" for setting in LONG]
    name = data("images")
    fit = ["fit", name, "--method=pren", *settings, "--set=backbone=small-cnn"]

    whole = good(*fit, "--out", "whole", "--json")
    assert json.loads(whole.out)["finished"] is True
    assert whole.err.count("\n  round") == 13
    assert "\x1b" not in whole.out + whole.err

    process = subprocess.Popen(
        [*PREN, *fit, "--out", "run", "--json"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where the tests run in the background of a shell, they and their children would ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        told = ""
        while "round  2/12" not in told:
            line = process.stderr.readline()
            assert line, told
            told += line
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=100)
    assert process.returncode == 130
    assert out == ""
    assert "Interrupted. The model of the last finished round is kept" in rest
    assert "Traceback" not in rest
    assert not (tmp_path / "run" / "predictions.csv").exists()

    predicted = good("predict", "run", name, "--out", "labels.csv", "--json")
    assert json.loads(predicted.out) == {
        "out": "labels.csv",
        "inputs": 25,
        "unreadable": 0,
        "unsure": 0,
        "top": 3,
    }

    command = shlex.split(rest.rpartition("Go on with: ")[2])
    resumed = good(*command[1:], "--json")
    assert 0 < resumed.err.count("\n  round") <= 10
    for file in SAME:
        assert (tmp_path / "run" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    assert json.loads(resumed.out)["metrics"] == json.loads(whole.out)["metrics"]
