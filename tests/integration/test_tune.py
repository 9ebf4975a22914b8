"""``pren tune`` through the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

PROGRESSIVE = ("--set=rounds=1", "--set=initial_batches=4", "--set=batches=1", "--set=hidden=[8]")


def study(folder):
    content = json.loads(Path(folder, "study.json").read_text())
    for trial in content["trials"]:
        del trial["seconds"]
    return content


def test_from_tuning_to_a_run(good, data):
    name = data()
    tuned = good("tune", name, "--method", "eszsl", "--trials", "3", "--out", "tuned")
    assert tuned.out.startswith("Top-1 ")
    assert "pren fit --config tuned/config.yaml" in tuned.out
    assert [line.split()[0] for line in tuned.err.splitlines()[1:]] == ["1/3", "2/3", "3/3"]
    chosen = yaml.safe_load(Path("tuned/config.yaml").read_text())
    good("fit", "--config", "tuned/config.yaml", "--out", "run")
    fitted = yaml.safe_load(Path("run/config.yaml").read_text())
    assert fitted["params"] == chosen["params"]
    assert fitted["method"] == "eszsl"


def test_from_what_was_chosen_elsewhere(good, bad, data):
    name = data()
    good("tune", name, "--method", "eszsl", "--trials", "3", "--out", "zsl")
    chosen = yaml.safe_load(Path("zsl/config.yaml").read_text())["params"]
    again = (
        "tune",
        name,
        "--method",
        "eszsl",
        "--setting",
        "gzsl",
        "--trials",
        "2",
        "--out",
        "gzsl",
        "--start",
        "zsl/config.yaml",
    )
    good(*again)
    first = study("gzsl")["trials"][0]["params"]
    assert first == {key: chosen[key] for key in first}
    good(*again)
    assert bad(*again[:-2]).says("study-other")
    assert bad("tune", name, "--method", "sae", "--start", "zsl/config.yaml").says("other-method")


def test_for_machines(good, data):
    result = json.loads(good("tune", data(), "--method", "eszsl", "--trials", "2", "--json").out)
    assert result["config"] == "tuning/data-eszsl/config.yaml"
    assert result["figure"] == "top1"
    assert set(result["params"]) == {"feature_reg", "signature_reg", "features", "gamma", "refinement", "balance"}
    assert (result["trials"], result["failed"], len(result["folds"])) == (2, 0, 2)


def test_gzsl_chooses_gamma(good, data):
    data(setting="gzsl")
    out = good("tune", "data.npz", "--method", "eszsl", "--setting", "gzsl", "--trials", "2", "--out", "tuned").out
    assert out.startswith("H ")
    assert yaml.safe_load(Path("tuned/config.yaml").read_text())["params"]["gamma"] != 0
    good("fit", "--config", "tuned/config.yaml", "--out", "run")


def test_a_method_with_a_seed_and_fixed_parameters(good, data):
    good("tune", data(), "--method", "progressive", *PROGRESSIVE, "--seed", "7", "--trials", "2", "--out", "tuned")
    params = yaml.safe_load(Path("tuned/config.yaml").read_text())["params"]
    assert (params["seed"], params["rounds"], params["heads"]) == (7, 1, 1)
    assert study("tuned")["what"]["seed"] == 7


def test_embedded_data(good):
    result = json.loads(
        good("tune", "numbers-features", "--method", "eszsl", "--trials", "2", "--json", "--out", "t").out
    )
    assert len(result["folds"]) == 3
    assert max(trial["value"] for trial in study("t")["trials"]) == result["mean_over_folds"] > 0.1


@pytest.mark.slow
def test_killed_and_continued(good, data):
    """A real process, killed without warning in the middle of a study."""
    name = data()
    good("tune", name, "--method", "eszsl", "--trials", "10", "--out", "whole")
    tune = ("tune", name, "--method=eszsl", "--trials=3000", "--out=parts")
    command = [sys.executable, "-m", "pren.cli", *tune]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not Path("parts/study.json").exists() and process.poll() is None:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    done = len(study("parts")["trials"])
    assert done >= 1
    good("tune", name, "--method", "eszsl", "--trials", "10", "--out", "parts")
    assert study("parts")["trials"][:10] == study("whole")["trials"]


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["ezsl", "data.npz"], "unknown-name ezsl"),
        (["eszsl", "nothing"], "unknown-name nothing"),
        (["eszsl", "data.npz", "--set", "regg=1"], "param-value regg"),
        (["eszsl", "data.npz", "--option", "fold=1"], "option-conflict"),
        (
            [
                "eszsl",
                "data.npz",
                *("--set=feature_reg=1", "--set=signature_reg=1"),
                *("--set=features=raw", "--set=refinement=none", "--set=balance=0"),
            ],
            "nothing-to-tune",
        ),
        (["eszsl", "data.npz", "--setting", "other"], "config-invalid"),
    ],
)
def test_what_can_be_mended(bad, data, arguments, refusal):
    data()
    method, name, *more = arguments
    assert bad("tune", name, "--method", method, *more).says(refusal)
    assert not Path("tuning").exists()


def test_ctrl_c(pren, data, monkeypatch):
    from pren.research import tuning

    monkeypatch.setattr(tuning, "attempt", lambda *given, **named: (_ for _ in ()).throw(KeyboardInterrupt))
    result = pren("tune", data(), "--method", "eszsl", "--out", "tuned")
    assert result.code == 130
    assert "the same command" in result.err
