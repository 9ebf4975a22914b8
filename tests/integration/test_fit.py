"""``pren fit``: options become a run folder."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from pren.cli.fit import default_folder
from pren.foundation.version import __version__
from pren.methods.pren import PrEN
from pren.methods.registry import METHODS
from pren.store.config import RunConfig

SAME = ("model.safetensors", "history.csv", "pseudo_labels.csv", "predictions.csv", "metrics.json")


def config(folder):
    return yaml.safe_load((Path(folder) / "config.yaml").read_text(encoding="utf-8"))


def results(folder):
    return {name: (Path(folder) / name).read_bytes() for name in SAME}


class TestOutput:
    def test_figures_go_to_standard_output_and_progress_to_standard_error(self, good, data, small):
        out, err = good("fit", data(), *small, "--out", "run")[1:]
        assert "PrEN on data.npz (zsl, finished)" in out
        assert "Top-1" in out
        assert out.splitlines()[-4:] == [
            "Labels: run/predictions.csv (18 inputs)",
            "Model: run/model.safetensors",
            "Report (open it in a browser): run/report.html",
            "What to label next: pren suggest run",
        ]
        assert "round" not in out
        assert [line.split()[1] for line in err.splitlines() if line.startswith("  round")] == ["0/2", "1/2", "2/2"]
        assert "pseudo-labels" in err

    def test_json_is_all_there_is_on_standard_output(self, good, data, small):
        result = good("fit", data(), *small, "--out", "run", "--json")
        summary = json.loads(result.out)
        metrics = json.loads(Path("run/metrics.json").read_text())
        assert summary["run"] == "run"
        assert summary["finished"] is True
        assert summary["data"] == str(Path("data.npz").absolute())
        assert summary["setting"] == "zsl"
        assert summary["method"] == "pren"
        assert (summary["rounds_done"], summary["rounds"]) == (2, 2)
        assert (summary["model"], summary["predictions"]) == ("run/model.safetensors", "run/predictions.csv")
        assert summary["extractor"] is None
        assert summary["metrics"] == metrics
        assert summary["params"] == config("run")["params"]
        assert summary["record"] == config("run")["record"]
        assert "round" in result.err

    def test_the_figures_are_those_of_the_metrics(self, good, data, small):
        out = good("fit", data(), *small, "--out", "run").out
        metrics = json.loads(Path("run/metrics.json").read_text())
        top1, macc = (f"{100 * metrics[key]:.1f}" for key in ("top1", "macc"))
        assert f"By the answers: Top-1 {top1}, mAcc {macc} (per cent)." in out.splitlines()

    def test_gzsl_has_figures_of_its_own(self, good, data, small):
        out = good("fit", data(setting="gzsl"), "--setting", "gzsl", *small, "--out", "run").out
        metrics = json.loads(Path("run/metrics.json").read_text())
        u, s, h, ausuc = (f"{100 * metrics[key]:.1f}" for key in ("u", "s", "h", "ausuc"))
        assert f"By the answers: u {u}, s {s}, H {h}, AUSUC {ausuc} (per cent)." in out.splitlines()
        assert config("run")["setting"] == "gzsl"

    def test_without_answers_there_are_no_figures(self, good, data, small):
        result = good("fit", data(answers=None), *small, "--out", "run")
        assert "Top-1" not in result.out
        assert "finished" in result.out

    def test_the_record_holds_the_command(self, good, data, small):
        name = data(file="my data.npz")
        good("fit", name, *small, "--out", "my run")
        record = config("my run")["record"]
        assert shlex.split(record["command"]) == ["pren", "fit", name, *small, "--out", "my run"]
        assert record["versions"]["pren"] == __version__

    def test_the_folder_is_named_after_the_run_if_nobody_says_otherwise(self, good, data, small):
        good("fit", data(), *small)
        good("fit", data(), *small, "--seed", "3")
        good("fit", data(), "--method", "eszsl")
        assert sorted(path.name for path in Path("runs").iterdir()) == ["data-eszsl-0", "data-pren-0", "data-pren-3"]

    def test_images(self, good, data, small):
        good("fit", data("images"), *small, "--set", "backbone=small-cnn", "--out", "run")
        assert config("run")["params"]["backbone"] == "small-cnn"

    def test_a_registered_data_set(self, good, small):
        out = good("fit", "numbers-features", *small, "--set=rounds=0", "--split=val", "--out", "run", "--json").out
        summary = json.loads(out)
        assert summary["data"] == "numbers-features"
        assert summary["split"] == "val"
        assert summary["metrics"]["images"] == 600


class TestSet:
    @pytest.mark.parametrize(
        ("assignment", "key", "value"),
        [
            ("heads=5", "heads", 5),
            (" heads = 5 ", "heads", 5),
            ("lr=1e-3", "lr", 0.001),
            ("lr=0.5", "lr", 0.5),
            ("lr=1", "lr", 1.0),
            ("dim=null", "dim", None),
            ("dim=~", "dim", None),
            ("dim=", "dim", None),
            ("hidden=[6, 7]", "hidden", [6, 7]),
            ("hidden=[]", "hidden", []),
            ("output_relu=false", "output_relu", False),
            ("completion=lapack", "completion", "lapack"),
            ("completion=none", "completion", "none"),
            ("completion=null", "completion", "null"),
            ("completion='null'", "completion", "null"),
            ("gamma=-1.5", "gamma", -1.5),
            ("gamma=-1e-2", "gamma", -0.01),
            ("seed=1234567890123456789", "seed", 1234567890123456789),
        ],
    )
    def test_values(self, good, data, small, assignment, key, value):
        good("fit", data(), *small, "--set=rounds=0", f"--set={assignment}", "--out", "run")
        assert config("run")["params"][key] == value
        assert type(config("run")["params"][key]) is type(value)

    def test_the_last_one_counts(self, good, data, small):
        good("fit", data(), *small, "--set=heads=5", "--set=heads=6", "--out", "run")
        assert config("run")["params"]["heads"] == 6

    @pytest.mark.parametrize(
        ("assignment", "refusal"),
        [
            ("heads", "option-value --set"),
            ("=5", "option-value --set"),
            ("", "option-value --set"),
            ("heads=[1", "yaml --set 1"),
            ("heads={a: b: c}", "yaml"),
            ("heads=!!python/object/apply:os.getcwd []", "yaml"),
            ("heads=2001-99-99", "yaml"),
            ("heads=!!int x", "yaml"),
            ("heads=many", "param-value heads many"),
            ("heads=2.5", "param-value heads 2.5"),
            ("heads=", "param-value heads"),
            ("heads=0", "param-value heads 0"),
            ("lr=0", "param-value lr 0"),
            ("lr=.nan", "param-value lr nan"),
            ("gamma=.inf", "param-value gamma inf"),
            ("haeds=5", "param-value haeds heads"),
            ("projection=[1]", "param-value projection"),
            ("dim=6", "projection-size dim=6"),
        ],
    )
    def test_bad_values(self, bad, data, small, assignment, refusal):
        name = data()
        assert bad("fit", name, *small, f"--set={assignment}", "--out", "run").says(refusal)
        assert not Path("run").exists()

    def test_a_variant_cannot_be_made_another_method(self, bad, data):
        assert bad("fit", data(), "--method=progressive", "--set=heads=3").says("param-preset 1")
        assert not Path("runs").exists()

    def test_the_seed_has_an_option_of_its_own(self, good, data, small):
        good("fit", data(), *small, "--set=seed=3", "--seed", "4", "--out", "run")
        assert config("run")["params"]["seed"] == 4

    def test_a_negative_seed(self, bad, data):
        assert bad("fit", data(), "--method", "pren", "--seed", "-1").says("param-value 1")


class TestConfig:
    def test_a_file_says_what_to_do_and_the_command_line_wins(self, good, data, small):
        content = {
            "data": data(),
            "method": "pren-no-projection",
            "setting": "gzsl",
            "params": {"heads": 3, "n_max": 7},
        }
        Path("my.yaml").write_text(yaml.safe_dump(content))
        good("fit", "--config", "my.yaml", *small[1:], "--setting", "zsl", "--out", "run")
        found = config("run")
        assert found["method"] == "pren-no-projection"
        assert found["setting"] == "zsl"
        assert found["params"]["n_max"] == 7
        assert found["params"]["heads"] == 4

    @pytest.mark.parametrize("method", ["pren", "eszsl"])
    def test_the_configuration_of_a_run_repeats_it(self, good, data, small, method):
        more = small if method == "pren" else ("--set=feature_reg=3.5",)
        good("fit", data(), "--method", method, *more, "--out", "one")
        good("fit", "--config", "one/config.yaml", "--out", "two")
        same = [name for name in SAME if Path("one", name).exists()]
        assert len(same) >= 3
        assert all(Path("one", name).read_bytes() == Path("two", name).read_bytes() for name in same)
        assert config("one")["params"] == config("two")["params"]
        assert config("one")["record"]["command"] != config("two")["record"]["command"]

    @pytest.mark.parametrize(
        ("content", "refusal"),
        [
            ("data: data.npz\nmethd: pren\n", "config-invalid"),
            ("data: data.npz\nmethod: pren\nparams: {haeds: 3}\n", "param-value"),
            ("data: data.npz\nparams: [1]\n", "config-invalid"),
            ("data: data.npz\nsetting: fsl\n", "config-invalid zsl gzsl"),
            ("data: [1]\n", "config-invalid"),
            ("method: pren\n", "data-missing"),
            ("data: data.npz\nmethod: pern\n", "unknown-name"),
            ("data: [", "yaml my.yaml"),
            ("just text", "config-form my.yaml"),
            ("", "config-form my.yaml"),
            ("data: 2001-99-99\n", "yaml my.yaml"),
            ("data: !!python/object/apply:os.mkdir ['trap']\n", "yaml my.yaml"),
            ("data: !!python/name:os.system\n", "yaml my.yaml"),
            ("!!python/object/new:os.mkdir ['trap']\n", "yaml my.yaml"),
        ],
    )
    def test_bad_files(self, bad, data, contents, content, refusal):
        data()
        Path("my.yaml").write_text(content)
        before = contents()
        assert bad("fit", "--config", "my.yaml", "--out", "run").says(refusal)
        assert contents() == before

    def test_no_file(self, bad, data):
        assert bad("fit", data(), "--config", "nowhere.yaml").says("file-odd nowhere.yaml")
        assert bad("fit", data(), "--config", ".").says("file-odd")

    def test_no_data(self, bad):
        assert bad("fit").says("data-missing")


class TestNames:
    def test_unknown_names_get_the_nearest_ones(self, bad, data):
        assert bad("fit", data(), "--method", "pern").says("unknown-name pern")
        assert bad("fit", "numbrs").says("unknown-name numbrs")
        assert bad("fit", "numbers", "--split", "tset").says("split-unknown tset")
        assert bad("fit", "numbers", "--setting", "gzls").says("config-invalid zsl gzsl")
        assert bad("fit", "numbers", "--root", ".").says("root-unused")
        assert bad("fit", data(), "--split", "test").says("split-unknown test")
        assert not Path("runs").exists()

    def test_options_that_there_are_not(self, pren):
        for arguments in (["fitt"], ["fit", "--sed", "3"], ["fit", "--seed", "x"], ["list"], ["predict"]):
            result = pren(*arguments)
            assert result.code == 2
            assert result.out == ""
            assert "Error" in result.err
            assert "Traceback" not in result.err


@pytest.fixture
def interrupt(monkeypatch, pren):
    """Run a command and press Ctrl-C after some training steps."""

    def run(steps, *arguments):
        original, count = torch.optim.Adam.step, 0

        def step(self, *args, **kwargs):
            nonlocal count
            count += 1
            if count > steps:
                raise KeyboardInterrupt
            return original(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(torch.optim.Adam, "step", step)
            return pren(*arguments)

    return run


class TestResume:
    def test_an_interrupted_run_goes_on_to_the_same_end(self, good, interrupt, data, small):
        name = data()
        good("fit", name, *small, "--out", "whole")
        result = interrupt(7, "fit", name, *small, "--out", "run")
        assert result.code == 130
        assert result.out == ""
        assert "The model of the last finished round is kept" in result.err
        assert "Traceback" not in result.err
        assert "unfinished, 0 of 2 rounds" in good("show", "run").out
        good("predict", "run", data(file="pool.npz"), "--out", "labels.csv")
        result = good("fit", "--resume", "run")
        assert [line.split()[1] for line in result.err.splitlines() if line.startswith("  round")] == ["1/2", "2/2"]
        assert results("run") == results("whole")

    def test_before_the_first_round_there_is_no_model_yet(self, good, bad, interrupt, data, small):
        name = data()
        result = interrupt(2, "fit", name, *small, "--out", "run")
        assert result.code == 130
        assert "No round is finished yet" in result.err
        assert bad("predict", "run", name, "--out", "labels.csv").says("model-missing")
        assert "unfinished, no round done" in good("show", "run").out
        good("fit", "--resume", "run")
        good("fit", name, *small, "--out", "whole")
        assert results("run") == results("whole")

    @pytest.mark.parametrize("folder", ["run", "my run", "it's", "[red]run"])
    def test_the_message_can_be_pasted(self, good, interrupt, data, small, folder):
        result = interrupt(7, "fit", data(), *small, "--out", folder)
        command = shlex.split(result.err.rpartition("Go on with: ")[2])
        assert command[0] == "pren"
        assert "finished" in good(*command[1:]).out
        assert Path(folder, "predictions.csv").is_file()

    def test_the_default_folder_is_resumed_too(self, good, interrupt, data, small):
        name = data()
        stopped = interrupt(7, "fit", name, *small)
        assert stopped.code == 130
        assert "pren fit --resume runs/data-pren-0" in stopped.err
        good("fit", "--resume", "runs/data-pren-0")
        assert Path("runs/data-pren-0/predictions.csv").is_file()

    def test_resuming_a_finished_run_changes_nothing(self, good, data, small, contents):
        good("fit", data(), *small, "--out", "run")
        before = contents()
        assert "finished" in good("fit", "--resume", "run").out
        assert contents() == before

    def test_resuming_as_another_run_is_refused(self, bad, interrupt, data, small, arrays, contents):
        name = data()
        interrupt(7, "fit", name, *small, "--out", "run")
        data(file="other.npz", pool=arrays()["pool"] + 1)
        before = contents()
        for arguments, message in (
            (["--set=heads=5"], "other-run 4 5"),
            (["--seed=1"], "other-run 0 1"),
            (["--setting=gzsl"], "other-run zsl gzsl"),
            (["--method=pren-no-projection"], "param-preset"),
            (["--method=eszsl"], "param-value"),
            (["other.npz"], "data-changed"),
            (["numbers"], "other-run data.npz numbers"),
        ):
            assert bad("fit", "--resume", "run", *arguments).says(message)
            assert contents() == before

    def test_resuming_with_other_data_is_refused(self, bad, interrupt, data, small, arrays, contents):
        interrupt(7, "fit", data(), *small, "--out", "run")
        data(pool=arrays()["pool"] + 1)
        before = contents()
        assert bad("fit", "--resume", "run").says("data-changed")
        assert contents() == before

    def test_there_must_be_a_run(self, bad, data):
        name = data()
        Path("empty").mkdir()
        for folder in ("nowhere", "empty", name):
            assert bad("fit", name, "--resume", folder).says("not-a-run")
        assert bad("fit", name, "--resume").says("usage")
        assert bad("fit", name, "--resume", "empty", "--out", "other").says("option-conflict")
        assert not Path("nowhere").exists()
        assert not Path("runs").exists()


class TestMethods:
    @pytest.mark.slow
    def test_every_listed_method_can_be_fitted(self, good, data):
        name = data()
        for method in json.loads(good("list", "methods", "--json").out):
            quick = ["rounds=1", "initial_batches=2", "batches=1", "hidden=[8]"]
            rounds = METHODS[method["name"]].method is PrEN
            small = [f"--set={assignment}" for assignment in quick] if rounds else []
            summary = json.loads(good("fit", name, "--method", method["name"], *small, "--json").out)
            assert summary["method"] == method["name"]
            assert summary["finished"]

    def test_who_names_no_method_gets_pren_vote(self, good, bad, data):
        assert json.loads(good("fit", data(), "--out", "run", "--json").out)["method"] == "pren-vote"
        assert "Default: pren-vote" in " ".join(good("fit", "--help").out.split())
        assert bad("fit", data(), "--set", "rounds=3").says("param-unknown rounds --method pren")
        assert bad("fit", data(), "--set", "evidense=1").says("param-value evidense evidence")

    def test_all_defaults_are_the_papers(self, pren, data, monkeypatch):
        """Nothing between the command line and the method changes a parameter."""
        fitted = []

        def fit_rounds(self, problem, state, fabric):
            fitted.append(self.get_params())
            raise KeyboardInterrupt

        monkeypatch.setattr(PrEN, "fit_rounds", fit_rounds)
        assert pren("fit", data(), "--method", "pren", "--out", "run").code == 130
        assert fitted == [PrEN().get_params()]

    def test_the_warning_about_equal_signatures_goes_to_standard_error(self, good, data, arrays):
        signatures = arrays()["signatures"].copy()
        signatures[7] = signatures[6]
        result = good("fit", data(signatures=signatures), "--method", "eszsl", "--json", "--out", "run")
        assert "'b class' and 'a class' have the same signature" in " ".join(result.err.split())
        assert json.loads(result.out)["finished"]
        assert "signature" not in good("show", "run").err, "it was told once"

    def test_every_answer_may_be_unknown(self, good, data):
        good("fit", data(answers=np.full(18, -1)), "--method", "eszsl", "--out", "run")
        assert Path("run/predictions.csv").is_file()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"data": "numbers"}, "numbers-pren-vote-0"),
        ({"data": "some/where/my.npz", "method": "pren", "params": {"seed": 3}}, "my-pren-3"),
        ({"data": "numbers", "method": "eszsl", "setting": "gzsl"}, "numbers-gzsl-eszsl-0"),
        ({"data": "my.npz", "setting": "gzsl", "options": {"hold_out": 0.25}}, "my-gzsl-hold_out=0.25-pren-vote-0"),
        (
            {"data": "cub", "split": "PS", "options": {"fold": 1, "features": "a/b.mat"}},
            "cub-PS-features=b-fold=1-pren-vote-0",
        ),
        (
            {"data": "mine", "method": "eszsl", "extractor": {"backbone": "resnet34", "mirrored": True}},
            "mine-frozen-mirrored-resnet34-eszsl-0",
        ),
    ],
)
def test_run_folders_are_named_after_what_tells_runs_apart(settings, name):
    assert default_folder(RunConfig.model_validate(settings)) == Path("runs") / name


def test_a_seed_for_a_method_without_chance(good, data):
    result = good("fit", data(), "--method", "eszsl", "--seed", "3", "--out", "run")
    assert "ESZSL has no randomness" in result.err
    assert "seed: 3" not in Path("run/config.yaml").read_text()
    again = good("fit", "data.npz", "--method", "eszsl", "--out", "again")
    assert "randomness" not in again.err
    assert Path("run/predictions.csv").read_bytes() == Path("again/predictions.csv").read_bytes()
