"""What `pren fit`, `forecast`, `show` and `predict` say about how far labels can be trusted."""

import csv
import html
import json
from pathlib import Path

import numpy as np
import pytest

from pren.foundation.errors import PrenError
from pren.trust import Trust

SOON = ("--rehearsals", "3")


@pytest.fixture
def features(make_problem, tmp_path):
    """A file with 9 seen and 3 unseen classes; names that a terminal could take for commands."""

    def save(setting="zsl", **changes):
        problem = make_problem(n_seen=9, n_unseen=3, per_class=8, pool_per_class=10, setting=setting)
        everything = {
            "features": problem.train[np.arange(len(problem.train))].numpy(),
            "labels": problem.labels,
            "signatures": problem.classes.signatures,
            "pool": problem.pool[np.arange(len(problem.pool))].numpy(),
            "class_names": np.array(problem.classes.names),
        }
        np.savez("my.npz", **(everything | changes))
        return "my.npz"

    return save


def rows(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class TestFit:
    def test_says_what_to_expect(self, good, features):
        out = good("fit", features(), *SOON, "--out", "run").out
        forecast = Trust.load("run").forecast
        assert forecast.sentence() in out
        assert "(3 rehearsals, 3 seen classes held out in each)" in out
        table = rows("run/predictions.csv")
        sure = [float(row["confidence"]) for row in table]
        counts = [sum(s >= 0.95 for s in sure), sum(0.95 > s >= 0.5 for s in sure), sum(s < 0.5 for s in sure)]
        words = "{} labels are sure (0.95 or more), {} likely (0.5 or more), {} doubtful."
        assert words.format(*counts) in out
        for name in {row["class"] for row in table}:
            assert f"{name} ({sum(row['class'] == name for row in table)})" in out

    def test_the_confidence_is_that_of_the_model(self, good, features):
        good("fit", features(), *SOON, "--out", "run")
        np.save("new.npy", np.load("my.npz")["pool"])
        good("predict", "run", "new.npy", "--out", "new.csv")
        assert [row["confidence"] for row in rows("new.csv")] == [
            row["confidence"] for row in rows("run/predictions.csv")
        ]

    def test_can_be_switched_off(self, good, features):
        out = good("fit", features(), "--rehearsals", "0", "--out", "run").out
        assert "There is no forecast" in out
        assert not Path("run/trust.safetensors").exists()
        assert {row["confidence"] for row in rows("run/predictions.csv")} == {""}

    def test_a_method_that_takes_long_is_not_rehearsed_unasked(self, good, features, small):
        assert "There is no forecast" in good("fit", features(), *small, "--out", "run").out
        assert "Expect" in good("fit", "my.npz", *small, "--rehearsals", "2", "--out", "other").out

    def test_classes_that_got_nothing_or_much(self, good, features):
        pool = np.load(features())["pool"]
        one_place = np.repeat(pool[:1], 30, axis=0)
        out = good("fit", features(pool=one_place), *SOON, "--out", "run").out
        assert "Classes without a label: " in out
        assert "Classes with very many labels: " in out

    def test_precision_leaves_labels_out(self, good, features):
        out = good("fit", features(), *SOON, "--min-accuracy", "0.999", "--out", "run").out
        table = rows("run/predictions.csv")
        empty = sum(not row["class"] for row in table)
        assert empty > 0
        assert f"{empty} inputs have no label: none is sure enough." in out
        assert all(row["confidence"] and bool(row["score"]) == bool(row["class"]) for row in table)

    def test_a_pool_of_another_kind_is_named(self, good, features):
        pool = np.load(features())["pool"]
        result = good("fit", features(pool=pool + 30), *SOON, "--min-accuracy", "0.9", "--out", "run")
        assert "unlike the labelled inputs" in result.out
        assert "less than 0.9 of the labels may be right" in result.err

    @pytest.mark.parametrize(
        ("arguments", "refusal"),
        [
            (["--min-accuracy", "0.9", "--rehearsals", "0"], "no-rehearsals"),
            (["--min-accuracy", "1.5"], "config-invalid min_accuracy"),
            (["--rehearsals", "1"], "rehearsals-one 0 2"),
            (["--method", "auto", "--set", "evidence=1"], "option-conflict --set"),
        ],
    )
    def test_what_cannot_be_done_is_said_at_the_start(self, bad, features, arguments, refusal):
        assert bad("fit", features(), *arguments, "--out", "run").says(refusal)
        assert not Path("run").exists()

    def test_too_few_seen_classes(self, good, bad, data):
        few = np.load(data())["labels"]
        keep = np.isin(few, np.unique(few)[:3])
        arrays = dict(np.load(data()))
        arrays |= {"features": arrays["features"][keep], "labels": few[keep]}
        np.savez("few.npz", **arrays)
        result = good("fit", "few.npz", "--method=eszsl", "--out", "few")
        assert "There is no forecast" in result.err
        advice = "(4 classes with labels are needed, and there are 3)"
        told = [result.err, result.out, html.unescape(Path("few/report.html").read_text())]
        for code, *command in (
            ("seen-too-few", "fit", "few.npz", "--method=eszsl", "--min-accuracy=0.9", "--out=other"),
            ("seen-too-few", "fit", "few.npz", "--method=auto", "--out=other"),
            ("seen-too-few", "forecast", "few.npz", "--method=eszsl"),
            ("no-rehearsals", "predict", "few", "few.npz", "--min-accuracy=0.9"),
            ("no-rehearsals", "export", "few", "--out=few.onnx", "--min-accuracy=0.9"),
        ):
            refusal = bad(*command)
            assert refusal.code == code
            told.append(refusal.message)
        for text in told:
            assert advice in " ".join(text.split())
            assert "--rehearsals 10" not in text

    def test_a_method_that_cannot_be_rehearsed_is_kept(self, good, bad, features, monkeypatch):
        def fails(*given, **more):
            raise PrenError("planted", "too few classes for this")

        monkeypatch.setattr("pren.runs.steps.assess", fails)
        result = good("fit", features(), "--out", "run")
        assert "There is no forecast" in result.err
        assert "too few classes for this" in result.err
        assert rows("run/predictions.csv")[0]["class"]
        assert bad("fit", "my.npz", *SOON, "--out", "asked").says("planted")

    def test_gamma_is_chosen_unless_given(self, good, features):
        from pren.methods.storage import load_model

        name = features("gzsl")
        good("fit", name, "--method=eszsl", "--setting=gzsl", *SOON, "--out", "chosen")
        good("fit", name, "--method=eszsl", "--setting=gzsl", *SOON, "--set=gamma=0.5", "--out", "given")
        assert load_model("chosen").chosen_gamma_ is not None
        assert load_model("given").chosen_gamma_ is None
        assert json.loads(good("show", "chosen", "--json").out)["forecast"]["held_out"] == 3

    def test_resume_of_a_finished_run_says_the_same(self, good, features):
        first = good("fit", features(), *SOON, "--out", "run", "--json").out
        assert good("fit", "--resume", "run", "--json").out == first


class TestForecast:
    def test_is_what_fit_says(self, good, features):
        told = good("forecast", features(), *SOON).out
        assert told.strip() in good("fit", "my.npz", *SOON, "--out", "run").out
        assert not Path("runs").exists()

    def test_json(self, good, features):
        (told,) = json.loads(good("forecast", features(), *SOON, "--json").out)
        assert told["method"] == "pren-vote"
        assert 0 <= told["low"] <= told["expected"] <= told["high"] <= 1
        assert len(told["rehearsed"]) == 3

    def test_needs_rehearsals(self, bad, features):
        assert bad("forecast", features(), "--rehearsals=0").says("rehearsals-one 0")
        assert bad("fit", "my.npz", "--method=auto", "--rehearsals=0", "--out=run").says("rehearsals-one 0")

    def test_auto_takes_the_best(self, good, features):
        found = json.loads(good("forecast", features(), "--method=auto", *SOON, "--json").out)
        assert {one["method"] for one in found} >= {"pren-vote", "gfzsl features=whitened"}
        means = [np.mean(one["rehearsed"]) for one in found]
        assert means == sorted(means, reverse=True)
        result = json.loads(good("fit", "my.npz", "--method=auto", *SOON, "--out", "run", "--json").out)
        assert result["method"] == found[0]["method"].split()[0]
        assert result["forecast"]["rehearsed"] == found[0]["rehearsed"]
        assert good("fit", "--resume", "run").code == 0


class TestPredict:
    def test_one_line_tells_how_sure(self, good, features):
        good("fit", features(), *SOON, "--out", "run")
        np.save("new.npy", np.load("my.npz")["pool"][:2])
        lines = good("predict", "run", "new.npy", "--top", "1").out.splitlines()
        assert lines[0].split() == ["input", "class", "score", "confidence", "familiarity"]
        assert float(lines[1].split()[3]) == pytest.approx(
            float(rows("run/predictions.csv")[0]["confidence"]), abs=0.006
        )

    def test_precision(self, good, bad, features):
        good("fit", features(), *SOON, "--min-accuracy", "0.999", "--out", "run")
        np.save("new.npy", np.load("my.npz")["pool"])
        out = good("predict", "run", "new.npy", "--min-accuracy", "0.999", "--out", "new.csv").out
        labels = [row["class"] for row in rows("new.csv")]
        assert labels == [row["class"] for row in rows("run/predictions.csv")]
        assert f"{labels.count('')} of them have no label" in out
        said = good("predict", "run", "new.npy", "--min-accuracy", "0.999").out
        assert said.count("not sure enough") == labels.count("")

    def test_precision_needs_what_tells_how_sure(self, bad, good, features):
        good("fit", features(), "--rehearsals", "0", "--out", "none")
        good("fit", features(), *SOON, "--out", "run")
        np.save("new.npy", np.load("my.npz")["pool"])
        assert bad("predict", "none", "new.npy", "--min-accuracy", "0.9").says("no-rehearsals")
        assert bad("predict", "run", "new.npy", "--min-accuracy", "0.9", "--among", "all").says("no-rehearsals")
