"""A backbone whose last stage learns the seen classes first, on the command line: any method gets the features."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from refusals import refused
from run_folders import run_folder
from safetensors.torch import load_file, save_file

from pren.store.config import RunConfig

pytestmark = pytest.mark.slow

HOW = ("--finetune", "--finetune-epochs", "1", "--finetune-strength", "0.5")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache of its own."""
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def labels(run):
    with Path(run, "predictions.csv").open(newline="", encoding="utf-8") as file:
        return [row["class"] for row in csv.DictReader(file)]


def tails(cache):
    return sorted(path.name for path in (cache / "tails").iterdir())


def test_what_a_model_needs_is_in_the_model(good, manydata, backbone, cache):
    fit = ("fit", "mydata", *backbone, *HOW)
    good(*fit, "--out", "run")
    model, before = load_file("run/model.safetensors"), load_file("tiny.safetensors")
    name = "layer4.0.conv1.weight"
    assert not torch.equal(model[f"tail.model.{name}"], before[name]), "it has learned"
    assert not any(".layer3." in key for key in model)
    assert len(tails(cache)) == 4, "one of all seen classes, and one of each rehearsal"
    shutil.rmtree(cache)
    predicted = json.loads(good("predict", "run", "mydata/unlabelled", "--json").out)["predictions"]
    assert [row["classes"][0]["class"] for row in predicted] == labels("run")
    assert json.loads(good("evaluate", "run", "--json").out)["images"] == 6
    assert not (cache / "tails").exists(), "nothing is learned again"
    good("export", "run", "--format", "torch", "--out", "model.pt2")
    shutil.rmtree(cache)  # where predict has left features that did not come from half-precision maps
    good(*fit, "--rehearsals", "0", "--out", "again")
    again = load_file("again/model.safetensors")
    assert all(torch.equal(value, again[key]) for key, value in model.items())


def test_held_out_classes_say_how_far_to_go(good, manydata, backbone, cache):
    run = ("mydata", *backbone, "--finetune", "--finetune-epochs", "1")
    found = json.loads(good("extract", *run, "--json").out)
    how = found["finetuning"]
    assert list(how["held_out"]) == ["0.0", "0.25"]
    assert how["strength"] == 0 or how["held_out"][str(how["strength"])] > how["held_out"]["0.0"]
    known = tails(cache)
    assert len([name for name in known if name.endswith(".json")]) == 1
    said = good("fit", *run, "--method", "eszsl", "--rehearsals", "0", "--out", "run").err
    assert tails(cache) == known, "nothing is learned or tried twice"
    assert ("Fine-tuning is off" in said) == (how["strength"] == 0)
    assert yaml.safe_load(Path("run/config.yaml").read_text())["record"]["source"]["finetuning"] == how


def test_strength_0_is_the_frozen_backbone(good, manydata, backbone):
    good("fit", "mydata", *backbone, "--finetune", "--finetune-strength", "0", "--rehearsals", "0", "--out", "tuned")
    good("fit", "mydata", *backbone, "--frozen", "--rehearsals", "0", "--out", "frozen")
    assert labels("tuned") == labels("frozen")


def test_too_few_classes_leave_it_as_it_is(good, mydata, backbone):
    said = good("fit", "mydata", *backbone, "--finetune", "--out", "run").err
    (warning,) = (line for line in said.splitlines() if "Fine-tuning is off" in line)
    assert "there are 3" in warning
    assert yaml.safe_load(Path("run/config.yaml").read_text())["record"]["source"]["finetuning"]["strength"] == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--finetune", "--frozen"), "[option-conflict]: --frozen"),
        (("--finetune-epochs", "3"), "[option-conflict]: --finetune-epochs"),
        (("--finetune-strength", "0.5"), "[option-conflict]: --finetune-strength"),
        (("--finetune", "--train-from", "9"), "[stage-unknown]: The network has 4 stages"),
    ],
)
def test_what_cannot_be(pren, manydata, backbone, more, said):
    result = pren("fit", "mydata", *backbone, *more, "--out", "run")
    assert (result.code, said in result.err) == (2, True)
    assert not Path("run").exists()


def test_a_damaged_tail_is_learned_again(good, manydata, backbone, cache):
    run = ("mydata", *backbone, *HOW, "--json")
    first = json.loads(good("extract", *run).out)["facts"]
    tail = cache / "tails" / tails(cache)[0]
    content = tail.read_bytes()
    for damaged in (content[:100], b"", b"x" * len(content)):
        tail.write_bytes(damaged)
        said = good("extract", *run)
        assert "is made again" in said.err
        assert json.loads(said.out)["facts"] == first
        assert tail.read_bytes() == content


def test_resuming_is_exact_or_refused(manydata, backbone, cache):
    extractor = {"backbone": "test_resnet", "weights": "tiny.safetensors", "finetune": {"epochs": 1, "strength": 0.5}}
    params = {"heads": 2, "dim": 2, "hidden": [8], "batches": 2, "initial_batches": 2, "rounds": 2}
    config = RunConfig.model_validate({"data": "mydata", "method": "pren", "params": params, "extractor": extractor})

    def stop(done, method):
        raise KeyboardInterrupt

    run_folder(config, "whole")
    for out in ("stopped", "moved"):
        with pytest.raises(KeyboardInterrupt):
            run_folder(config, out, on_round=stop)
    run_folder(config, "stopped", resume=True)
    whole, stopped = (load_file(f"{out}/model.safetensors") for out in ("whole", "stopped"))
    assert all(torch.equal(value, stopped[name]) for name, value in whole.items())
    tail = cache / "tails" / tails(cache)[0]
    save_file({key: 2 * value if value.is_floating_point() else value for key, value in load_file(tail).items()}, tail)
    with refused("cache-lost"):
        run_folder(config, "moved", resume=True)
