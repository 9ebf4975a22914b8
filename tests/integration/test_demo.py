"""``pren demo``, smaller than it is."""

import json
import shlex
from pathlib import Path

import pytest

from pren.cli import demo
from pren.methods.pren_pool import PrENPool

pytestmark = pytest.mark.slow

METHODS = ["pren-pool", "pren", "pren-no-projection", "progressive", "eszsl"]


@pytest.fixture(autouse=True)
def smaller(monkeypatch):
    """The demo's settings, cut down until it takes a second or two."""
    quick = {"dim": 4, "heads": 2, "hidden": [8], "initial_batches": 1, "batches": 1, "batch_size": 4}
    monkeypatch.setattr(demo, "QUICK", {"rounds": 1, **quick})
    monkeypatch.setattr(PrENPool, "rehearsals", 2)


def test_for_machines(good):
    result = good("demo", "--out", "demo", "--seed", "5", "--json")
    content = json.loads(result.out)
    assert content["out"] == "demo"
    assert content["seed"] == 5
    assert [row["method"] for row in content["results"]] == METHODS
    for row in content["results"]:
        metrics = json.loads(Path("demo", row["method"], "metrics.json").read_text())
        assert (row["top1"], row["macc"]) == (metrics["top1"], metrics["macc"])
    assert result.err.count("  round  1/1") == 3
    assert json.loads(good("show", "demo/pren", "--json").out)["params"]["seed"] == 5
    assert sorted(path.name for path in Path("demo").iterdir()) == sorted([*METHODS, "images"])


def test_for_people_and_what_it_tells_them_to_try(good):
    out = good("demo").out
    assert Path("runs/demo/pren/model.safetensors").is_file()
    for title in ("PrEN-Pool", "PrEN", "PrEN w/o Proj", "Progressive Training", "ESZSL"):
        assert any(line.startswith(f"{title}  ") for line in out.splitlines())
    assert demo.REMARK in out
    commands = [shlex.split(line, comments=True) for line in out.splitlines() if line.startswith("  pren ")]
    assert [command[1] for command in commands] == ["show", "evaluate", "predict", "predict", "fit"]
    for command in commands[:-1]:
        good(*command[1:])
    assert len(Path("predictions.csv").read_text().splitlines()) == 1 + demo.IMAGES
    assert commands[-1][2] == "numbers"


def test_it_never_writes_over_anything_but_takes_an_empty_folder(good, bad, contents, monkeypatch):
    monkeypatch.setattr(demo, "METHODS", ("pren-pool",))
    Path("runs/demo").mkdir(parents=True)
    good("demo")
    assert [path.name for path in Path("runs/demo").iterdir()] == []
    assert Path("runs/demo-2/pren-pool/model.safetensors").is_file()
    good("demo", "--out", "runs/demo")
    assert Path("runs/demo/pren-pool/model.safetensors").is_file()
    Path("afile").write_text("precious")
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("precious")
    before = contents()
    for out in ("runs/demo", "afile", "thesis"):
        assert bad("demo", "--out", out).says(f"out-taken {out}")
    assert contents() == before
