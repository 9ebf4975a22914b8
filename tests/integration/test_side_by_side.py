"""Several backbones at once on the command line: ``--backbone a+b``."""

import csv
import json
from pathlib import Path

import pytest

from pren.images.extraction import FrozenBackbone

pytestmark = pytest.mark.slow

ONE, OTHER = "test_resnet", "tinynet_e"  # 160 and 106 pixels
BOTH = ("--backbone", f"{ONE}+{OTHER}", "--weights", "random")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache of its own."""
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def column(path, name):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return [row[name] for row in csv.DictReader(file)]


def test_extract(good, mydata, cache):
    alone = json.loads(good("extract", "mydata", "--backbone", ONE, "--weights=random", "--json").out)
    other = json.loads(
        good("extract", "mydata", "--backbone", OTHER, "--weights=random", "--cache=there", "--json").out
    )
    both = json.loads(good("extract", "mydata", *BOTH, "--json").out)
    assert (both["images"], both["extracted"], both["problems"]) == (12, 12, [])
    assert both["width"] == alone["width"] + other["width"]
    assert both["facts"]["parts"] == [alone["facts"], other["facts"]]
    assert Path(both["folder"]) == Path(alone["folder"]).parent == cache
    assert len(list(cache.iterdir())) == 2, "the first was there already"
    assert "12 photographs, 0 of them extracted now" in good("extract", "mydata", *BOTH).out


def test_from_photographs_to_labels(good, mydata, monkeypatch):
    out = good("fit", "mydata", *BOTH, "--out", "run").out
    assert f"features of {ONE}+{OTHER}, frozen (weights random, geometry whole)" in out
    monkeypatch.setattr(FrozenBackbone, "__call__", None)  # everything is in the caches
    assert "Top-1" in good("evaluate", "run").out
    good("predict", "run", mydata / "unlabelled", "--out", "labels.csv")
    predicted = dict(zip(column("labels.csv", "input"), column("labels.csv", "class"), strict=True))
    fitted = dict(zip(column("run/predictions.csv", "input"), column("run/predictions.csv", "class"), strict=True))
    assert predicted == fitted
    good("fit", "--resume", "run")


def test_a_run_is_named_after_all(good, mydata):
    good("fit", "mydata", *BOTH, "--method", "eszsl")
    assert Path(f"runs/mydata-frozen-{ONE}+{OTHER}-eszsl-0").is_dir()


def test_a_method_that_trains_a_backbone_takes_their_features(good, mydata):
    quick = [f"--set={each}" for each in ("rounds=1", "heads=2", "dim=2", "hidden=[8]", "initial_batches=2")]
    good("fit", "mydata", "--method", "pren", *quick, *BOTH, "--frozen", "--out", "run")
    good("predict", "run", mydata / "unlabelled", "--out", "labels.csv")
    assert column("labels.csv", "class") == column("run/predictions.csv", "class")


def test_forecast_tune_and_compare(good, manydata, here):
    assert json.loads(good("forecast", "mydata", "--method", "eszsl", *BOTH, "--json").out)
    tuned = json.loads(good("tune", "mydata", "--method", "eszsl", *BOTH, "--trials", "1", "--out", "t", "--json").out)
    assert tuned["failed"] == 0
    assert f"backbone: {ONE}+{OTHER}" in Path("t/config.yaml").read_text()
    good("fit", "--config", "t/config.yaml", "--out", "run")
    good("compare", "mydata", "--methods", "eszsl,sae", *BOTH, "--out", "c")
    good("compare", "mydata", "--methods", "eszsl,sae", "--backbone", ONE, "--weights=random", "--out", "c")
    assert len(here) == 4, "other features are other cells"


def test_export_takes_their_features(good, bad, mydata):
    good("fit", "mydata", *BOTH, "--out", "run")
    message = bad("export", "run", "--format", "torch", "--out", "model.pt2")
    assert f"{ONE}+{OTHER} take photographs of different sizes" in message.message
    assert message.says("export-unsupported")
    assert not Path("model.pt2").exists()
    assert (
        "takes float32 (N, " in good("export", "run", "--from-features", "--format", "torch", "--out", "model.pt2").out
    )


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        (("--method", "pren"), f"backbone-several {ONE}+{OTHER} --frozen"),
        (("--method", "pren", "--train-from", "1"), f"backbone-several {ONE}+{OTHER}"),
        (("--finetune",), f"backbone-several {ONE}+{OTHER} --train-from --finetune"),
        (("--weights", "tiny.pth"), f"backbone-several {ONE}+{OTHER}"),
        (("--backbone", f"{ONE}+{ONE}"), f"backbone-twice {ONE}"),
        (("--backbone", f"{ONE}+resnet43"), "backbone-unknown resnet43"),
    ],
)
def test_what_cannot_be_is_told_before_any_data_are_read(bad, more, refusal):
    assert bad("fit", "nowhere/", "--backbone", f"{ONE}+{OTHER}", *more, "--out", "run").says(refusal)
    assert not Path("run").exists()


def test_weights_that_moved_are_of_one_network(good, bad, mydata):
    good("fit", "mydata", *BOTH, "--method", "eszsl", "--out", "run")
    for verb in (("predict", "run", mydata / "unlabelled"), ("evaluate", "run")):
        assert bad(*verb, "--weights", "tiny.pth").says("backbone-several")
