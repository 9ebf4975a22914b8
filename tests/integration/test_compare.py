"""``pren compare`` through the command line. Only what needs real processes has them: each takes seconds to start."""

import csv
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pren.foundation.lock import LOCK
from pren.research import computing

PARAMS = "progressive: {rounds: 1, initial_batches: 4, batches: 1, hidden: [8]}\n"


@pytest.fixture
def params():
    Path("params.yaml").write_text(PARAMS)
    return ("--params", "params.yaml")


def cells(folder):
    """Every cell with its figures, but not its times."""
    return {path.name: json.loads(path.read_text())["result"]["figures"] for path in Path(folder, "cells").glob("*")}


def test_for_people(good, data, here, params):
    result = good("compare", data(), "--methods", "progressive,eszsl", "--seeds", "2", *params, "--out", "c")
    lines = result.out.splitlines()
    assert lines[0] == "data (zsl, per cent)"
    assert lines[1].split() == ["method", "runs", "Top-1", "mAcc", "fit", "s", "predict", "s", "peak", "MB"]
    assert lines[2].startswith("Progressive Training ")
    assert " ± " in lines[2]
    assert lines[3].startswith("ESZSL ")
    assert [line.split()[0] for line in result.err.splitlines() if "/3 " in line] == ["1/3", "2/3", "3/3"]
    assert {path.name for path in Path("c").iterdir()} == {
        "cells",
        *(f"table.{kind}" for kind in ("md", "tex", "csv")),
        *(f"chart.{kind}" for kind in ("png", "svg")),
    }
    with Path("c/table.csv").open() as file:
        assert [row["method"] for row in csv.DictReader(file)] == ["Progressive Training", "ESZSL"]


def test_for_machines(good, data, here):
    data(setting="gzsl")
    arguments = ("compare", "data.npz", "--setting", "gzsl", "--methods", "esz*", "--json", "--out", "c")
    content = json.loads(good(*arguments).out)
    (row,) = content["rows"]
    assert content["setting"] == "gzsl"
    assert (row["method"], row["runs"], row["failed"]) == ("ESZSL", 1, 0)
    assert 0 <= row["figures"]["ausuc"]["mean"] <= 1
    again = good(*arguments)
    assert json.loads(again.out) == content
    assert "1/1" not in again.err, "nothing is computed twice"


def test_several_data_sets_with_a_root_for_some(good, data, here):
    name = data()
    out = good("compare", name, "numbers-features", "--root", "nowhere", "--methods", "eszsl", "--out", "c").out
    assert "data (zsl" in out
    assert "numbers-features (zsl" in out


def test_tuned_parameters(good, data, here):
    good("tune", data(), "--method", "eszsl", "--trials", "3", "--out", "tuned/eszsl")
    good("compare", "data.npz", "--methods", "eszsl", "--params", "tuned", "--out", "c")
    (path,) = Path("c/cells").iterdir()
    chosen = json.loads(path.read_text())["cell"]["params"]
    good("fit", "--config", "tuned/eszsl/config.yaml", "--out", "run")
    metrics = json.loads(Path("run/metrics.json").read_text())
    assert cells("c")[path.name] == {name: metrics[name] for name in ("top1", "macc")}
    assert f"feature_reg: {chosen['feature_reg']}" in Path("run/config.yaml").read_text()


@pytest.mark.slow
def test_killed_and_continued(good, data, params, here):
    """A real process with children, killed without warning; the rest is done later."""
    arguments = (
        "compare",
        data(),
        "--methods",
        "eszsl,progressive",
        "--seeds",
        "1",
        *params,
        "--jobs",
        "2",
        "--out",
        "c",
    )
    command = [sys.executable, "-m", "pren.cli", *arguments]
    with Path("err").open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        while not list(Path("c").glob(".writing-*/task.json")) and process.poll() is None:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert list(Path("c").glob(".writing-*")), Path("err").read_text()
    with Path("c", LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a worker that was being started holds it for a moment longer
    first = cells("c")
    result = good(*arguments)
    assert len(cells("c")) == 2
    assert first.items() <= cells("c").items()
    assert not list(Path("c").glob(".writing-*"))
    assert "ESZSL" in result.out


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["data.npz", "--methods", "ezsl"], "unknown-name ezsl"),
        (["data.npz", "--methods", ","], "option-value --methods"),
        (["nothing", "--methods", "eszsl"], "unknown-name nothing"),
        (["data.npz", "--methods", "eszsl", "--params", "none.yaml"], "file-odd none.yaml"),
        (["data.npz", "--methods", "eszsl", "--out", "full"], "out-taken"),
    ],
)
def test_what_can_be_mended(bad, data, here, arguments, refusal):
    data()
    Path("full").mkdir()
    Path("full/notes").touch()
    assert bad("compare", *arguments).says(refusal)


def test_data_without_answers(bad, data, here):
    assert bad("compare", data(answers=None), "--methods", "eszsl").says("no-answers")


def test_without_matplotlib(bad, data, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert bad("compare", data(), "--methods", "eszsl").says("extra-missing")
    assert not Path("comparison").exists()


def test_ctrl_c(pren, data, monkeypatch):
    monkeypatch.setattr(computing, "run_tasks", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    result = pren("compare", data(), "--methods", "eszsl", "--out", "c")
    assert result.code == 130
    assert "the same command" in result.err


def test_what_failed_is_said_below_the_table(good, data, here):
    Path("params.yaml").write_text("pren: {dim: 99}\n")
    arguments = ("--methods", "eszsl,pren", "--seeds", "2", "--params", "params.yaml", "--out", "c")
    lines = good("compare", data(), *arguments).out.splitlines()
    assert lines[1].split()[-2:] == ["peak", "MB"]
    assert lines[4].startswith("PrEN: failed (2 of 2 seeds): dim=99 ")
    assert "failed (2 of 2 seeds)" in Path("c/table.csv").read_text() + Path("c/table.md").read_text().replace("\\", "")
