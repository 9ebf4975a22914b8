"""Photographs on the command line: list backbones, extract, fit end to end and frozen, evaluate, predict."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from pren.foundation.extras import how_to_install
from pren.images import engines, extraction, quality
from pren.images.quality import Chosen
from pren.images.torchvision_operators import import_timm
from pren.images.weights import PACKAGES
from pren.runs import settings
from pren.store.folder import result_files
from pren.store.manifest import CHECKSUM_LINE, with_checksum, write_manifest

pytestmark = pytest.mark.slow

TINY = "test_resnet"  # one of timm's networks for tests
SETTINGS = (
    "--set=rounds=1",
    "--set=heads=2",
    "--set=dim=2",
    "--set=hidden=[8]",
    "--set=batch_size=4",
    "--set=initial_batches=2",
    "--set=batches=2",
    "--set=n_max=2",
)
QUICK = ("--method=pren", *SETTINGS)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache of its own."""
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def rows(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class TestListBackbones:
    def test_by_pattern(self, good):
        names = [entry["name"] for entry in json.loads(good("list", "backbones", "resnet34*", "--json").out)]
        assert "resnet34.a1_in1k" in names
        assert all(name.startswith("resnet34") for name in names)

    @pytest.mark.parametrize(("size", "pixels"), [(0, 224), (1, 240), (2, 260)])
    def test_those_that_need_no_download(self, good, size, pixels):
        out = good("list", "backbones", f"tf_efficientnet_lite{size}").out
        assert f"{pixels} x {pixels} pixels, weights of the extra 'photos'" in out


class TestExtract:
    def test_once_and_for_all(self, good, mydata, backbone):
        first = json.loads(good("extract", "mydata", *backbone, "--json").out)
        assert (first["images"], first["extracted"], first["problems"]) == (12, 12, [])
        assert first["facts"]["backbone"] == TINY
        assert json.loads(good("extract", "mydata", *backbone, "--json").out)["extracted"] == 0
        assert "12 photographs, 0 of them extracted now" in good("extract", "mydata", *backbone).out

    def test_any_folder_with_images(self, good, mydata, backbone):
        shutil.copytree(mydata / "unlabelled", "pictures")
        result = json.loads(good("extract", "pictures", *backbone, "--cache", "elsewhere", "--json").out)
        assert result["images"] == 6
        assert Path(result["folder"]).parent == Path("elsewhere")

    def test_bad_files_are_named_at_the_end(self, good, mydata, backbone):
        (mydata / "unlabelled" / "bad[red].jpg").write_bytes(b"no image")
        (mydata / "unlabelled" / "empty.png").touch()
        out = good("extract", "mydata", *backbone).out
        assert "14 photographs, 12 of them extracted now" in out
        assert "2 files cannot be read" in out
        assert "bad[red].jpg cannot be read as an image" in out
        assert "the file is empty" in out

    def test_strict(self, bad, mydata, backbone):
        (mydata / "unlabelled" / "bad.jpg").write_bytes(b"no image")
        assert bad("extract", "mydata", *backbone, "--strict").says("input-unreadable bad.jpg")

    def test_data_without_photographs(self, bad, backbone):
        assert bad("extract", "numbers", *backbone).says("no-photographs")

    @pytest.mark.parametrize(
        ("arguments", "refusal"),
        [
            (("--backbone", "resnet43"), "backbone-unknown resnet43"),
            (("--backbone", "small-cnn"), "weights-missing"),
            (("--backbone", TINY, "--weights", "nowhere.pth"), "file-missing nowhere.pth"),
        ],
    )
    def test_backbones_that_cannot_be_had(self, bad, mydata, arguments, refusal):
        assert bad("extract", "mydata", *arguments).says(refusal)


class TestChoice:
    def test_the_engine_is_named_and_kept_apart(self, good, mydata, backbone):
        pytest.importorskip("openvino")
        first = json.loads(good("extract", "mydata", *backbone, "--engine", "openvino", "--json").out)
        assert (first["extracted"], first["facts"]["engine"]) == (12, "openvino")
        assert json.loads(good("extract", "mydata", *backbone, "--engine", "openvino", "--json").out)["extracted"] == 0
        other = json.loads(good("extract", "mydata", *backbone, "--engine", "torch", "--json").out)
        assert other["extracted"] == 12
        assert "engine" not in other["facts"]
        good("fit", "mydata", *backbone, "--engine", "openvino", *QUICK, "--frozen", "--out", "run")
        assert json.loads(good("show", "run", "--json").out)["extractor"]["engine"] == "openvino"
        assert "geometry whole, by OpenVINO)" in good("show", "run").out
        good("predict", "run", mydata / "unlabelled", "--out", "labels.csv")
        predicted = {row["input"]: row["class"] for row in rows("labels.csv")}
        assert predicted == {row["input"]: row["class"] for row in rows("run/predictions.csv")}

    def test_bfloat16_is_refused_where_the_cpu_has_none(self, bad, mydata, backbone, monkeypatch):
        pytest.importorskip("openvino")
        monkeypatch.setattr(engines, "has_bfloat16", lambda: False)
        for verb in ("extract", "fit"):
            assert bad(verb, "mydata", *backbone, "--engine", "openvino-bfloat16").says(
                "precision-cpu --engine openvino"
            )

    def test_a_run_that_is_older_than_engines_was_torchs(self, good, mydata, backbone, monkeypatch):
        good("fit", "mydata", *backbone, *QUICK, "--frozen", "--out", "run")
        path = Path("run/config.yaml")
        lines = path.read_bytes().partition(CHECKSUM_LINE)[0].splitlines(keepends=True)
        new = (b"engine", b"size", b"tokens")
        path.write_bytes(with_checksum(b"".join(line for line in lines if line.split(b":")[0].strip() not in new)))
        identity = json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))["run"]
        write_manifest(Path("run"), result_files(Path("run")), identity)
        monkeypatch.setattr(engines, "is_accelerated", lambda: False)  # OpenVINO would be chosen now
        assert "Top-1" in good("evaluate", "run").out

    def test_quality_chooses_backbones(self, good, bad, mydata, backbone, monkeypatch):
        asked = []

        def choose(quality, weights):
            asked.append((quality, weights))
            return Chosen(TINY, mirrored=True)

        monkeypatch.setattr(settings, "choose", choose)
        Path("weights").mkdir()
        shutil.copy("tiny.safetensors", f"weights/{TINY}.safetensors")
        how = ("--quality", "best", "--weights", "weights")
        facts = json.loads(good("extract", "mydata", *how, "--json").out)["facts"]
        assert (facts["backbone"], facts["mirrored"]) == (TINY, True)
        good("fit", "mydata", *how, "--out", "run")
        extractor = json.loads(good("show", "run", "--json").out)["extractor"]
        assert (extractor["backbone"], extractor["mirrored"]) == (TINY, True)
        assert set(asked) == {("best", "weights")}
        for more in (("--backbone", TINY), ("--finetune",), ("--weights", "tiny.safetensors")):
            assert bad("extract", "mydata", "--quality", "good", *more).says("option-conflict --quality")

    def test_a_size_of_ones_own(self, good, mydata, backbone):
        facts = json.loads(good("extract", "mydata", *backbone, "--size", "64", "--json").out)["facts"]
        assert facts["preprocessing"]["sample_shape"] == [3, 64, 64]

    @pytest.mark.parametrize("option", [("--engine", "torch"), ("--size", "64")])
    def test_what_a_frozen_backbone_has_needs_one(self, bad, mydata, backbone, option):
        assert bad("fit", "mydata", "--method", "pren", *backbone, *option).says(
            f"option-conflict {option[0]} --frozen"
        )
        assert bad("fit", "numbers", *option).says(f"option-conflict {option[0]}")


class TestFit:
    def test_without_a_hub_the_option_that_helps_is_named(self, bad, mydata, no_hub):
        message = bad("fit", "mydata", "--method", "pren")
        assert message.says("weights-unreachable")
        assert message.says("weights-unreachable --backbone")

    @pytest.mark.parametrize("frozen", [(), ("--frozen",)])
    def test_a_wrong_name_is_told_before_any_data_are_read(self, bad, frozen):
        assert bad("fit", "nowhere/", "--backbone", "resnet43", *frozen).says("backbone-unknown resnet43")

    def test_frozen_from_photographs_to_labels(self, good, mydata, backbone, monkeypatch):
        good("extract", "mydata", *backbone)
        monkeypatch.setattr(extraction.FrozenBackbone, "__call__", None)  # everything is in the cache
        good("fit", "mydata", *backbone, "--frozen", *QUICK, "--out", "run")
        assert {row["input"] for row in rows("run/predictions.csv")} == {
            path.relative_to(mydata / "unlabelled").as_posix() for path in (mydata / "unlabelled").rglob("*.png")
        }
        assert "Top-1" in good("evaluate", "run").out
        good("predict", "run", mydata / "unlabelled", "--out", "labels.csv")
        predicted = {row["input"]: row["class"] for row in rows("labels.csv")}
        assert predicted == {row["input"]: row["class"] for row in rows("run/predictions.csv")}

    def test_show_says_which_backbone_made_the_features(self, good, mydata, backbone):
        out = good("fit", "mydata", *backbone, "--frozen", *QUICK, "--out", "run").out
        weights = str(Path("tiny.safetensors").absolute())
        assert f"features of {TINY}, frozen (weights {weights}, geometry whole)" in out
        assert "Labels: run/predictions.csv (6 inputs)" in out.splitlines()
        shown = good("show", "run").out
        assert TINY in shown
        assert "backbone " not in shown
        assert "augmentation" not in shown
        summary = json.loads(good("show", "run", "--json").out)
        known = {"backbone": TINY, "weights": weights, "geometry": "whole"}
        usual = {
            "mirrored": False,
            "until": None,
            "finetune": None,
            "size": None,
            "tokens": "class and mean",
            "alike": None,
        }
        assert summary["extractor"] == {**known, **usual, "engine": "torch"}
        assert not {"backbone", "weights", "augmentation"} & summary["params"].keys()

    def test_mirror_images_count_too(self, good, bad, mydata, backbone, cache):
        out = good("fit", "mydata", *backbone, "--mirrored", "--out", "run").out
        assert f"features of {TINY}, frozen, with mirror images (" in out
        assert "frozen, with mirror images" in Path("run/report.html").read_text(encoding="utf-8")
        good("extract", "mydata", *backbone, "--mirrored")
        assert len(list(cache.iterdir())) == 1, "both had the same ones"
        good("predict", "run", mydata / "unlabelled", "--out", "labels.csv")
        predicted = {row["input"]: row["class"] for row in rows("labels.csv")}
        assert predicted == {row["input"]: row["class"] for row in rows("run/predictions.csv")}
        good("fit", "mydata", *backbone, "--out", "plain")
        assert len(list(cache.iterdir())) == 2, "others are kept apart"
        for more in (("--finetune",), ("--method=pren", "--train-from=1")):
            said = bad("fit", "mydata", *backbone, "--mirrored", *more, "--out", "none")
            assert said.says("backbone-settings --mirrored")

    def test_a_folder_that_is_taken_costs_no_extraction(self, bad, mydata, backbone, cache):
        Path("run").mkdir()
        Path("run/precious").write_text("")
        assert bad("fit", "mydata", *backbone, "--frozen", "--out", "run").says("out-taken")
        assert not cache.exists()

    def test_show_keeps_what_has_an_effect(self, good, mydata, backbone):
        good("fit", "mydata", *backbone, *QUICK, "--out", "run")
        summary = json.loads(good("show", "run", "--json").out)
        assert summary["extractor"] is None
        assert (summary["params"]["backbone"], summary["params"]["augmentation"]) == (TINY, "none")

    def test_what_is_not_in_the_cache_is_extracted(self, good, mydata, backbone, cache):
        good("fit", "mydata", *backbone, "--frozen", *QUICK, "--cache", "here", "--out", "run")
        assert list(Path("here").iterdir())
        assert not cache.exists()

    def test_every_method_takes_features(self, good, mydata, backbone):
        good("fit", "mydata", *backbone, "--frozen", "--method", "eszsl", "--out", "run")
        good("predict", "run", mydata / "unlabelled", "--out", "labels.csv")
        assert len(rows("labels.csv")) == 6

    def test_weights_that_have_changed_are_not_taken_for_the_same(self, good, bad, mydata, backbone):
        good("fit", "mydata", *backbone, "--frozen", "--method", "eszsl", "--out", "run")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(8)
            save_file(import_timm().create_model(TINY).state_dict(), "tiny.safetensors")
        message = bad("predict", "run", mydata / "unlabelled", "--out", "labels.csv")
        assert message.says("weights-other")

    def test_end_to_end(self, good, mydata, backbone, monkeypatch):
        kept = []
        monkeypatch.setattr("pren.cli.fit.keep_all_memory", lambda: kept.append(True))
        good("fit", "mydata", *backbone, *QUICK, "--frozen", "--out", "frozen")
        assert not kept
        good("fit", "mydata", *backbone, *QUICK, "--set=augmentation=flip-crop", "--set=pieces=2", "--out", "run")
        assert kept == [True]
        Path("tiny.safetensors").unlink()  # the model has weights of its own
        good("predict", "run", mydata / "unlabelled", "--out", "labels.csv")
        predicted = {row["input"]: row["class"] for row in rows("labels.csv")}
        assert predicted == {row["input"]: row["class"] for row in rows("run/predictions.csv")}

    def test_a_rival_end_to_end(self, good, mydata, backbone):
        quick = ("--set=epochs=1", "--set=batch_size=4")
        good("fit", "mydata", *backbone, "--method", "qfsl", *quick, "--out", "run")
        good("predict", "run", mydata / "unlabelled", "--out", "labels.csv")
        predicted = {row["input"]: row["class"] for row in rows("labels.csv")}
        assert predicted == {row["input"]: row["class"] for row in rows("run/predictions.csv")}

    def test_a_method_that_trains_no_backbone_has_it_frozen(self, good, mydata, backbone):
        said = good("fit", "mydata", *backbone, "--out", "default").err
        assert f"PrEN-Vote: uses features of the frozen backbone {TINY}." in said
        assert "frozen" not in good("fit", "mydata", *backbone, "--frozen", "--out", "said").err, "who says so knows"
        for name in ("config.yaml", "predictions.csv"):
            one, two = (Path(run, name).read_text().split("record:")[0] for run in ("default", "said"))
            assert one == two
        assert f"backbone: {TINY}" in Path("default/config.yaml").read_text()
        good("fit", "--resume", "default")
        good("predict", "default", mydata / "unlabelled", "--out", "labels.csv")

    def test_backbones_whose_weights_are_installed_need_no_name(self, good, mydata, no_hub, monkeypatch):
        names = list(PACKAGES)[:2]
        monkeypatch.setattr(quality, "PACKAGES", dict.fromkeys(names))
        chosen = f"features of the frozen backbone {'+'.join(names)} (choose another with --backbone)"
        for frozen in ((), ("--frozen",)):
            out = f"run{len(frozen)}"
            said = good("fit", "mydata", *frozen, "--out", out).err
            assert (chosen in said, f"{quality.LARGE} would be better" in said) == (not frozen, True)
            assert f"backbone: {'+'.join(names)}" in Path(out, "config.yaml").read_text()
        extracted = json.loads(good("extract", "mydata", "--json").out)
        assert (extracted["facts"]["backbone"], extracted["extracted"]) == ("+".join(names), 0), "as fit does"

    def test_without_a_hub_or_weights_what_to_install_is_named(self, bad, mydata, no_hub, monkeypatch):
        monkeypatch.setattr("pren.images.weights.find_spec", lambda module: None)
        message = bad("fit", "mydata")
        assert message.says("weights-unreachable")
        assert how_to_install("photos") in message.message

    def test_a_backbone_that_has_to_be_trained(self, bad, mydata):
        assert bad("fit", "mydata", "--backbone", "small-cnn").says("weights-missing --method")

    def test_weights_of_a_file_without_a_name_are_the_papers(self, bad, mydata, backbone):
        assert bad("fit", "mydata", "--weights", "tiny.safetensors").says("weights-other")

    def test_a_bad_photograph_costs_no_other(self, good, mydata, backbone):
        (mydata / "unlabelled" / "bad.jpg").write_bytes(b"no image")
        for kind in ([], ["--frozen"]):
            result = good("fit", "mydata", *backbone, *kind, *QUICK, "--out", f"run{len(kind)}")
            assert "1 of 13 photographs cannot be read and are left out" in result.err
            assert "predictions.csv (7 inputs, 1 of them cannot be read)" in result.out
            table = {row["input"]: row for row in rows(f"run{len(kind)}/predictions.csv")}
            bad = table.pop("bad.jpg")
            assert (bad["class"], bad["score"]) == ("", "")
            assert "bad.jpg cannot be read as an image" in bad["error"]
            assert len(table) == 6
            assert all(row["class"] and row["score"] and not row["error"] for row in table.values())

    def test_features_and_a_backbone_exclude_each_other(self, bad, backbone):
        message = bad("fit", "cub", "--root", ".", "--features-file", "res101.mat", *backbone)
        assert message.says("option-conflict --backbone --frozen --features-file")

    def test_features_need_no_backbone(self, bad, data, backbone):
        assert bad("fit", data(), *backbone, "--frozen", *QUICK).says("no-photographs")


class TestTune:
    def test_end_to_end(self, good, manydata, monkeypatch):
        monkeypatch.setattr("pren.methods.end_to_end.DEFAULT", TINY)
        fixed = [option for option in SETTINGS if "dim" not in option]
        result = json.loads(
            good(
                "tune",
                "mydata",
                "--method",
                "pren",
                *fixed,
                "--set=weights=random",
                "--trials",
                "2",
                "--out",
                "t",
                "--json",
            ).out
        )
        assert (result["trials"], result["failed"], len(result["folds"])) == (2, 0, 2)

    def test_frozen(self, good, manydata, backbone):
        tuned = ("tune", "mydata", "--method", "eszsl", *backbone, "--frozen", "--geometry", "timm", "--cache", "here")
        result = json.loads(good(*tuned, "--trials", "2", "--out", "t", "--json").out)
        assert (result["failed"], len(result["folds"])) == (0, 2)
        assert list(Path("here").iterdir())
        good("fit", "--config", "t/config.yaml", "--out", "run")
        assert "geometry: timm" in Path("run/config.yaml").read_text()

    def test_a_method_that_needs_features_gets_them(self, good, manydata, backbone):
        good("tune", "mydata", "--method", "eszsl", *backbone, "--trials", "1", "--out", "t")
        assert f"backbone: {TINY}" in Path("t/config.yaml").read_text()


class TestCompare:
    def test_frozen(self, good, mydata, backbone, here):
        good("compare", "mydata", "--methods", "eszsl,sae", *backbone, "--frozen", "--out", "c")
        assert len(here) == 2
        good("compare", "mydata", "--methods", "eszsl,sae", *backbone, "--out", "c")
        assert len(here) == 2, "none of them could take photographs in another way"

    def test_in_processes_of_their_own(self, good, mydata, backbone):
        out = good(
            "compare", "mydata", "--methods", "eszsl", *backbone, "--frozen", "--cache", "here", "--out", "c"
        ).out
        assert "failed" not in out
        (cell,) = Path("c/cells").iterdir()
        result = json.loads(cell.read_text())["result"]
        assert set(result["figures"]) == {"top1", "macc"}
        assert result["peak_bytes"] > 1e7
        assert not list(Path("c").glob(".writing-*"))

    def test_methods_that_need_features_are_told_at_once(self, bad, mydata, here):
        message = bad("compare", "mydata", "--methods", "pren,eszsl,sae")
        assert message.says("backbone-not-trained ESZSL SAE --frozen")
        assert here == []
        assert not Path("comparison").exists()

    def test_a_backbone_to_train(self, good, bad, mydata, backbone, here):
        assert bad("compare", "mydata", "--methods", "pren,eszsl", *backbone).says("backbone-not-trained")
        quick = ", ".join(option.removeprefix("--set=").replace("=", ": ") for option in SETTINGS)
        Path("params.yaml").write_text(f"pren: {{{quick}}}")
        given = ("--methods", "pren", "--seeds", "1", "--params", "params.yaml", *backbone)
        assert "failed" not in good("compare", "mydata", *given, "--out", "c").out


class TestEvaluate:
    def test_weights_that_have_moved(self, good, bad, mydata, backbone):
        good("fit", "mydata", *backbone, "--frozen", "--method", "eszsl", "--out", "run")
        before = good("evaluate", "run").out
        Path("tiny.safetensors").rename("moved.safetensors")
        assert bad("evaluate", "run").says("file-missing")
        assert good("evaluate", "run", "--weights", "moved.safetensors", "--cache", "other").out == before
        assert list(Path("other").iterdir())
        assert bad("evaluate", "run", "--weights", "random").says("weights-other")

    def test_a_model_that_has_its_weights_with_it(self, good, bad, mydata, backbone):
        good("fit", "mydata", *backbone, *QUICK, "--out", "run")
        assert bad("evaluate", "run", "--weights", "tiny.safetensors").says("option-conflict")


def test_settings_of_a_file_and_options_about_the_backbone(good, mydata, backbone):
    Path("linear.yaml").write_text("data: mydata\nmethod: eszsl\n")
    good("fit", "--config", "linear.yaml", *backbone, "--out", "linear")
    assert f"backbone: {TINY}" in Path("linear/config.yaml").read_text()
    Path("frozen.yaml").write_text(f"data: mydata\nmethod: eszsl\nextractor: {{backbone: {TINY}, weights: random}}\n")
    good("fit", "--config", "frozen.yaml", "--weights", "tiny.safetensors", "--out", "run")
    text = Path("run/config.yaml").read_text()
    assert f"backbone: {TINY}" in text
    assert "tiny.safetensors" in text


class TestTrainFrom:
    """A backbone that is trained from a stage on; what goes into it is kept."""

    def test_stages_are_listed(self, good):
        out = good("list", "backbones", TINY, "--stages").out
        assert [line.split()[:2] for line in out.splitlines()[1:]] == [[f"layer{5 - n}", str(n)] for n in (4, 3, 2, 1)]
        found = json.loads(good("list", "backbones", TINY, "--stages", "--json").out)
        assert found[-1] == {"name": "layer4", "shape": [192, 10, 10], "bytes": 2 * 192 * 100}

    def test_fit_resume_and_predict(self, good, mydata, backbone):
        fit = ("fit", "mydata", *QUICK, *backbone, "--train-from", "1")
        good(*fit, "--out", "whole")
        model = load_file("whole/model.safetensors")
        assert any(name.startswith("model.network.backbone.model.layer4.") for name in model)
        assert not any(".layer3." in name for name in model)
        before = load_file("tiny.safetensors")
        name = "layer4.0.conv1.weight"
        assert not torch.equal(model[f"model.network.backbone.model.{name}"], before[name]), "it has learned"
        predicted = json.loads(good("predict", "whole", "mydata/unlabelled", "--json").out)["predictions"]
        fitted = [row["class"] for row in rows("whole/predictions.csv")]
        assert [row["classes"][0]["class"] for row in predicted] == fitted
        good(*fit, "--out", "again")
        again = load_file("again/model.safetensors")
        assert all(torch.equal(value, again[key]) for key, value in model.items())

    def test_it_computes_what_the_whole_network_does(self, good, mydata, backbone):
        """Without training, labels are those of the network in one piece."""
        untrained = ("--set=rounds=0", "--set=initial_batches=0")
        for out, more in (("parts", ("--train-from", "layer4")), ("whole", ())):
            good("fit", "mydata", *QUICK, *untrained, *backbone, *more, "--out", out)
        parts, whole = (rows(f"{out}/predictions.csv") for out in ("parts", "whole"))
        assert [row["class"] for row in parts] == [row["class"] for row in whole]

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (("--train-from", "layer7"), "There is no stage 'layer7'"),
            (("--train-from", "9"), "[stage-unknown]: The network has 4 stages"),
            (("--train-from", "1", "--frozen"), "[option-conflict]"),
            (("--train-from", "1", "--method", "eszsl"), "[backbone-not-trained]"),
        ],
    )
    def test_what_cannot_be(self, pren, mydata, backbone, more, said):
        result = pren("fit", "mydata", *SETTINGS[:0], "--method", "pren", *backbone, *more, "--out", "run")
        assert result.code == 2
        assert said in result.err
        assert not Path("run").exists()

    def test_a_configuration_cannot_do_it_either(self, pren, good, mydata, backbone):
        good("fit", "mydata", *QUICK, *backbone, "--train-from", "1", "--out", "run")
        config = yaml.safe_load(Path("run/config.yaml").read_text())
        Path("wrong.yaml").write_text(yaml.safe_dump({**config, "method": "eszsl", "params": {}}))
        result = pren("fit", "--config", "wrong.yaml", "--out", "wrong")
        assert (result.code, "[backbone-not-trained]" in result.err) == (2, True)

    def test_methods_have_no_stages(self, pren):
        assert "pren list backbones --stages NAME" in pren("list", "methods", "pren", "--stages").err
