"""``pren demo``, smaller than it is."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from pren.cli import demo
from pren.trust import Forecast

TITLES = ["PrEN", "PrEN w/o Proj", "Progressive Training"]


@pytest.fixture
def smaller(monkeypatch):
    """The comparison, cut down until it takes a moment."""
    quick = {"dim": 4, "heads": 2, "rounds": 1, "hidden": (8,), "initial_batches": 1, "batches": 1, "batch_size": 4}
    monkeypatch.setattr(demo, "QUICK", quick)
    monkeypatch.setattr(demo, "SEEDS", 2)
    monkeypatch.setattr(demo, "use_threads", lambda threads: None)  # it is for the whole process


@pytest.mark.slow
def test_for_machines(good, smaller):
    result = good("demo", "--out", "demo", "--seed", "5", "--json", "--no-report")
    content = json.loads(result.out)
    assert content["out"] == "demo"
    assert content["seed"] == 5
    shown = json.loads(good("show", "demo/pile", "--json").out)
    assert {**content["run"], "history": []} == shown  # it has no rounds
    assert content["run"]["method"] == "pren-vote"
    assert list(content["top1"]) == TITLES
    assert {len(values) for values in content["top1"].values()} == {2}
    assert [line.split(":")[0].strip() for line in result.err.splitlines() if "seed" in line] == ["seed 5", "seed 6"]
    assert sorted(path.name for path in Path("demo").iterdir()) == ["images", "pile"]
    assert not Path("demo/pile/report.html").exists()


@pytest.mark.slow
def test_for_people_and_what_it_tells_them_to_try(good, smaller):
    result = good("demo", "-q")
    assert result.err == ""
    lines = result.out.splitlines()
    assert [line for line in lines if line[:2] in ("1.", "2.", "3.")] == [
        "1. A pile is labelled",
        "2. PrEN beside its variants",
        "3. Try next",
    ]
    assert "Report (open it in a browser): runs/demo/pile/report.html" in lines
    # The truth comes after all that a person with photographs is told, and only once.
    by_answers = [place for place, line in enumerate(lines) if "answers" in line]
    assert len(by_answers) == 1
    assert by_answers[0] > lines.index("Model: runs/demo/pile/model.safetensors")
    assert all(any(line.startswith(f"{title}  ") for line in lines) for title in TITLES)
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("  pren ")]
    assert [command[1] for command in commands] == ["suggest", "predict", "report", "fit"]
    for command in commands[:-1]:
        good(*command[1:])
    assert len(Path("runs/demo/labels.csv").read_text().splitlines()) == 1 + demo.IMAGES
    assert commands[-1][1:] == ["fit", "YOURFOLDER"]


@pytest.mark.slow
def test_it_never_writes_over_anything(good, bad, contents, smaller, monkeypatch):
    monkeypatch.setattr(demo, "VARIANTS", ("progressive",))
    Path("runs/demo").mkdir(parents=True)
    good("demo", "--no-report", "--json")
    assert sorted(path.name for path in Path("runs").iterdir()) == ["demo", "demo-2"]
    good("demo", "--no-report", "--json", "--out", "runs/demo")  # an empty folder is taken
    assert Path("runs/demo/pile/model.safetensors").is_file()
    Path("afile").write_text("precious")
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("precious")
    before = contents()
    for out in ("runs/demo", "afile", "thesis"):
        assert bad("demo", "--out", out).says(f"out-taken {out}")
    assert contents() == before


def test_what_seeds_say():
    right = {"A": [0.70, 0.80], "B": [0.75, 0.85], "C": [0.20, 0.22]}
    spread = "within the spread of 14.1: these seeds do not say which is better."  # 2 x 7.07
    assert demo.verdict(right, "A", "B") == f"B is 5.0 points above A, which is {spread}"
    assert demo.verdict(right, "B", "A") == demo.verdict(right, "A", "B")
    assert demo.verdict(right, "A", "C") == "A is 54.0 points above C, which is beyond the spread of 8.5."


@pytest.mark.parametrize(("top1", "holds"), [(0.9, "the forecast holds"), (0.85, "the forecast misses")])
def test_whether_the_forecast_holds(top1, holds):
    forecast = Forecast(low=0.88, high=0.95, expected=0.92, rehearsed=(0.9, 0.92), held_out=5)
    said = demo.truth(SimpleNamespace(forecast=forecast, figures=SimpleNamespace(top1=top1)))
    assert f"{100 * top1:.1f} % of the labels are right" in said
    assert said.endswith(f"{holds}.")
