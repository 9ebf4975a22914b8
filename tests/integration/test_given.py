"""Labels that a person gives, and labelled photographs that are held out, on the command line."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from pren.runs.run import Progress, run_config

UNLEARNED = "eszsl ignores the 2 labels given in the pool: add --set refinement=soft-kmeans"


def table(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return {row["input"]: row for row in csv.DictReader(file)}


@pytest.fixture
def frozen(tiny_weights, tmp_path, monkeypatch):
    """The arguments for a tiny frozen network, with a cache of its own."""
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "cache"))
    return "--frozen", "--backbone", "test_resnet", "--weights", str(tiny_weights)


def label(folder, text):
    (folder / "labels.csv").write_text(f"file,class\n{text}\n")


class TestLabels:
    def test_check_counts_them_and_compares_them_with_the_answers(self, good, bad, pren, mydata):
        label(mydata, "0.png,yellow\nnew/1.png,red\n2.png,")
        lines = good("data", "check", "mydata").out.splitlines()
        assert lines[0].startswith("warning labels.csv, line 3: 'new/1.png' is 'red' here and 'yellow' in answers.csv")
        assert "6 labelled photographs, 6 unlabelled, 2 labels given, 4 answers" in lines
        assert json.loads(good("data", "check", "mydata", "--json").out)["given"] == 2
        label(mydata, "9.png,yellow")
        assert "error labels.csv, line 2: there is no photograph '9.png'" in pren("data", "check", "mydata").out
        assert bad("fit", "mydata", "--out", "run").says("folder-unusable labels.csv 2 9.png")
        assert not Path("run").exists()

    @pytest.mark.slow
    def test_they_count_in_the_next_fit(self, good, bad, mydata, frozen):
        good("fit", "mydata", *frozen, "--out", "before")
        label(mydata, "0.png,yellow\n4.png,violet\nnew/1.png,red")
        good("fit", "mydata", *frozen, "--out", "after")
        before, after = (Path(run, "model.safetensors").read_bytes() for run in ("before", "after"))
        assert before != after
        assert table("after/predictions.csv").keys() == {"0.png", "2.png", "4.png", "new/3.png", "new/5.png"}
        assert json.loads(good("evaluate", "after", "--json").out)["images"] == 3
        config = yaml.safe_load(Path("after/config.yaml").read_text())
        assert set(config["record"]["source"]["files"]) == {"signatures.csv", "labels.csv"}
        assert bad("evaluate", "before").says("data-changed")

    @pytest.mark.slow
    def test_a_method_that_does_not_learn_from_them_says_so(self, good, mydata, frozen):
        label(mydata, "0.png,yellow\n4.png,violet")
        result = good("fit", "mydata", *frozen, "--method", "eszsl", "--out", "run")
        assert " ".join(result.err.split()).count(UNLEARNED) == 1
        quiet = good("fit", "mydata", *frozen, "--method", "eszsl", "--set", "refinement=soft-kmeans", "--out", "next")
        assert "ignores" not in quiet.err

    def test_arrays(self, good, bad, data):
        given = np.full(18, -1)
        given[:2] = 5
        result = good("fit", data(given=given), "--method", "eszsl", "--out", "run")
        assert UNLEARNED in " ".join(result.err.split())
        assert json.loads(good("evaluate", "run", "--json").out)["images"] == 16
        given[0] = 0
        assert bad("fit", data(given=given), "--out", "next").says("given-unknown")


class TestHoldOut:
    @pytest.mark.slow
    def test_seen_classes_are_evaluated_without_moving_files(self, good, mydata, frozen):
        arguments = ("fit", "mydata", *frozen, "--setting", "gzsl")
        good(*arguments, "--out", "plain")
        assert json.loads(Path("plain/metrics.json").read_text())["s"] is None
        good(*arguments, "--hold-out", "0.5", "--out", "run")
        metrics = json.loads(good("evaluate", "run", "--json").out)
        assert all(0 <= metrics[figure] <= 1 for figure in ("u", "s", "h", "ausuc"))
        assert metrics["images"] == 9
        files = table("run/predictions.csv").keys()
        assert {name.rsplit("/", 1)[0] for name in files if name.startswith("..")} == {
            f"../images/{colour}" for colour in ("red", "green", "blue")
        }
        assert len(files) == 9
        assert yaml.safe_load(Path("run/config.yaml").read_text())["options"] == {
            "hold_out": 0.5,
            "signatures": "attributes",
        }
        assert good("data", "check", "mydata", "--setting", "gzsl").code == 0

    def test_arrays_and_an_interrupted_run(self, good, pren, data, small, monkeypatch):
        arguments = ("fit", data(), *small, "--setting", "gzsl", "--hold-out", "0.2")
        good(*arguments, "--out", "whole")

        def interrupted(*arguments, progress, **options):
            def stop(done, method):
                progress.on_round(done, method)
                raise KeyboardInterrupt

            return run_config(*arguments, progress=Progress(stop), **options)

        with monkeypatch.context() as patch:
            patch.setattr("pren.runs.run.run_config", interrupted)
            assert pren(*arguments, "--out", "run").code == 130
        good("fit", "--resume", "run")
        for name in ("model.safetensors", "predictions.csv", "metrics.json"):
            assert Path("run", name).read_bytes() == Path("whole", name).read_bytes()
        assert json.loads(good("evaluate", "run", "--json").out)["images"] == 18 + 5

    def test_what_cannot_be(self, bad, data, mydata):
        assert bad("fit", "mydata", "--hold-out", "0.2", "--out", "run").says("hold-out --setting")
        message = bad("fit", data(), "--hold-out", "20", "--setting", "gzsl", "--out", "run")
        assert message.says("hold-out hold_out 0 1")
        message = bad("fit", "numbers", "--hold-out", "0.2", "--setting", "gzsl", "--out", "run")
        assert message.says("hold-out hold_out --setting")
        assert not Path("run").exists()
