"""Files whose checksums hold although pren would never have written them so: refused with a message all the same."""

import json
from datetime import date

import pytest
import torch
import yaml
from refusals import refused
from run_folders import run_folder
from safetensors.torch import load_file, save_file

from pren.runs.reopening import load_state
from pren.store.checkpoint import FILES, STATE_FILE, TRAINING_FILE
from pren.store.folder import CONFIG_FILE, RunFolder, result_files
from pren.store.manifest import with_checksum, write_manifest

pytestmark = pytest.mark.slow


@pytest.fixture
def finished(data, configure, tmp_path):
    run_folder(configure(data()), tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def stopped(data, configure, interrupted, tmp_path):
    config = configure(data())
    interrupted(config, tmp_path / "run", 1)
    return config, tmp_path / "run"


def seal(run):
    """Make the checksums right."""
    identity = yaml.safe_load((run / CONFIG_FILE).read_text())["record"]["id"]
    for checkpoint in (run / "checkpoint").iterdir():
        write_manifest(checkpoint, FILES, identity)
    if (run / "predictions.csv").exists():
        write_manifest(run, result_files(run), identity)


@pytest.mark.parametrize("value", [date(2001, 1, 1), float("nan"), {1, 2}, b"x", {"a": float("inf")}])
def test_a_record_that_is_no_json(finished, value):
    content = yaml.safe_load((finished / CONFIG_FILE).read_text())
    content["record"]["started"] = value
    (finished / CONFIG_FILE).write_bytes(with_checksum(yaml.safe_dump(content).encode()))
    seal(finished)
    with refused("damaged"):
        RunFolder.open(finished)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "x", [1]])
def test_a_history_that_is_no_table_of_numbers(finished, value):
    path = finished / "checkpoint" / "round-0003" / STATE_FILE
    content = json.loads(path.read_text())
    content["history"][0]["loss"] = value
    path.write_text(json.dumps(content))
    seal(finished)
    with refused("damaged"):
        RunFolder.open(finished).history()


def test_metrics_beside_which_stands_something_that_is_no_json(finished):
    path = finished / "metrics.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "rule": float("nan")}))
    seal(finished)
    with refused("damaged"):
        RunFolder.open(finished).figures()


@pytest.mark.parametrize("name", ["metrics.json", "trust.safetensors", "signatures.json"])
def test_results_that_an_unfinished_run_cannot_have_are_not_taken_for_its_own(
    name, data, configure, interrupted, tmp_path
):
    config = configure(data(answers=None))
    interrupted(config, tmp_path / "run", 1)
    (tmp_path / "run" / name).write_text("{}")
    run_folder(config, tmp_path / "run", resume=True)
    assert not (tmp_path / "run" / name).exists()
    assert name not in json.loads((tmp_path / "run" / "manifest.json").read_text())["files"]
    assert load_state(tmp_path / "run").figures is None


def forge_training(run, name, change):
    path = run / "checkpoint" / "round-0001" / TRAINING_FILE
    tensors = load_file(path)
    tensors[name] = change(tensors[name])
    save_file(tensors, path)
    seal(run)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("round.images", torch.Tensor.bfloat16),
        ("round.labels", torch.Tensor.bfloat16),
    ],
)
def test_a_state_of_training_that_cannot_be(stopped, name, change):
    config, run = stopped
    forge_training(run, name, change)
    with refused("damaged"):
        run_folder(config, run, resume=True)


@pytest.mark.parametrize(
    "change", [torch.neg, lambda number: number + 2, lambda number: number * 0, lambda number: number.repeat(2)]
)
def test_a_state_of_training_of_another_round(stopped, change):
    """Such as that of the last one: the run would pass as finished, with a history that ends before."""
    config, run = stopped
    forge_training(run, "round.number", change)
    with refused("damaged"):
        run_folder(config, run, resume=True)


def test_an_empty_state_of_training(stopped):
    """With none at all, training would begin anew and add to the history that is there."""
    config, run = stopped
    save_file({}, run / "checkpoint" / "round-0001" / TRAINING_FILE)
    seal(run)
    with refused("damaged"):
        run_folder(config, run, resume=True)


def test_weights_that_diverge_in_the_last_step_do_not_replace_a_good_checkpoint(stopped, data, configure):
    """The loss of a step is taken before it, so it is still finite."""
    config, run = stopped
    config = configure(data(), batches=1)
    forge_training(run, "adam.0.exp_avg", lambda mean: torch.full_like(mean, torch.nan))
    content = yaml.safe_load((run / CONFIG_FILE).read_text())
    content["params"]["batches"] = 1
    (run / CONFIG_FILE).write_bytes(with_checksum(yaml.safe_dump(content).encode()))
    with refused("diverged"):
        run_folder(config, run, resume=True)
    assert [path.name for path in (run / "checkpoint").iterdir()] == ["round-0001"]


@pytest.mark.parametrize("content", [b"[" * 9000, b"9" * 9000, b"\xff", b"null"])
def test_a_lock_with_nonsense_in_it_is_taken_over(stopped, content):
    config, run = stopped
    (run / ".lock").write_bytes(content)
    assert run_folder(config, run, resume=True).finished()
    assert not (run / ".lock").exists()
