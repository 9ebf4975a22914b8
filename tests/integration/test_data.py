"""Benchmarks on the command line: ``pren data show``, and ``pren fit`` with the options of a data set."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from scipy.io import loadmat, savemat


@pytest.fixture
def photographs(root):
    """The same with images in the folder that CUB's archive unpacks to, and their order."""
    features = Path("xlsa17/data/CUB/mine.mat")
    content = loadmat(features)
    names = [str(cell[0]) for cell in loadmat("xlsa17/data/CUB/att_splits.mat")["allclasses_names"].ravel()]
    files = [f"{names[label - 1]}/{image}.png" for image, label in enumerate(content["labels"].ravel())]
    for number, file in enumerate(files):
        path = Path("CUB_200_2011/images", file)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (number, 5 * number, 200)).save(path)
    order = np.empty((len(files), 1), dtype=object)
    order[:, 0] = [f"/BS/somebody/{file}" for file in files]
    savemat("xlsa17/data/CUB/image_files.mat", {"image_files": order})
    features.unlink()
    return files


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("PREN_DATA", raising=False)


class TestShow:
    def test_what_is_there(self, good, root):
        out = good("data", "show", "cub", "--root", root).out
        lines = [line.split() for line in out.splitlines()]
        assert ["PS", "1", "5", "3", "20", "5", "18"] in lines
        assert "Features: mine.mat (6 x 43)" in out
        assert "Missing" not in out
        assert "Photographs: none in CUB_200_2011/images. " in out
        assert "data.caltech.edu" in out

    def test_images(self, good, root, photographs):
        assert "Photographs: 43 of 43 in CUB_200_2011/images.\n" in good("data", "show", "cub", "--root", root).out
        for file in photographs[:2]:
            Path("CUB_200_2011/images", file).unlink()
        out = good("data", "show", "cub", "--root", root).out
        assert (
            "Photographs: 41 of 43 in CUB_200_2011/images. The images are published by Caltech at data.caltech.edu"
            in out
        )
        Path("CUB_200_2011").rename("elsewhere")
        assert "Photographs: none of 43 in CUB_200_2011/images." in good("data", "show", "cub", "--root", root).out
        found = json.loads(good("data", "show", "cub", "--root", root, "--json").out)["images"]
        assert (found["found"], found["listed"], found["folder"]) == (0, 43, None)
        assert found["looked"] == ["CUB_200_2011/images"]

    def test_images_without_their_order(self, good, root, photographs):
        Path("xlsa17/data/CUB/image_files.mat").unlink()
        out = good("data", "show", "cub", "--root", root).out
        assert "Photographs: in CUB_200_2011/images, but" in out
        assert "Missing: No file in xlsa17/data/CUB gives the order" in out
        assert out.count("Max Planck Institute") == 1

    def test_json(self, good, root, monkeypatch):
        found = json.loads(good("data", "show", "cub", "--root", root, "--json").out)
        assert [split["split"] for split in found["splits"]] == ["PS", "SS"]
        assert all(len(split["sha256"]) == 64 for split in found["splits"])
        assert found["features"] == {"mine.mat": [6, 43]}
        monkeypatch.setenv("PREN_DATA", root)
        assert json.loads(good("data", "show", "cub", "--json").out) == found

    def test_any_folder(self, good, root):
        found = json.loads(good("data", "show", "xlsa17", "--root", "xlsa17/data/CUB", "--json").out)
        assert [split["split"] for split in found["splits"]] == ["own"]

    def test_what_is_missing(self, good, root):
        Path("xlsa17/data/CUB/mine.mat").unlink()
        Path("xlsa17/standard_split/CUB/att_splits.mat").unlink()
        out = good("data", "show", "cub", "--root", root).out
        assert "Missing: There is no att_splits.mat in xlsa17/standard_split/CUB." in out
        assert "Missing: There is no features file, such as res101.mat, in xlsa17/data/CUB." in out
        assert out.count("Max Planck Institute") == 1

    def test_damaged_files_are_part_of_the_answer(self, good, root):
        Path("xlsa17/data/CUB/mine.mat").write_bytes(b"damaged")
        Path("xlsa17/standard_split/CUB/att_splits.mat").write_bytes(b"damaged")
        assert good("data", "show", "cub", "--root", root).out.count("cannot be read as a MATLAB file") == 2

    @pytest.mark.parametrize("name", ["cub", "sun", "sun10", "awa2"])
    def test_nothing_at_all(self, good, name):
        out = good("data", "show", name).out
        assert "No folder is given" in out
        assert "Max Planck Institute" in out
        assert "holds neither" in good("data", "show", name, "--root", "nowhere").out

    def test_embedded_data(self, good):
        found = json.loads(good("data", "show", "numbers-features", "--json").out)
        assert [(s["split"], s["seen"], s["unseen"]) for s in found["splits"]] == [("test", 80, 20), ("val", 60, 20)]
        assert not found["missing"]

    def test_unknown_names(self, bad):
        assert bad("data", "show", "cbu").says("unknown-name")


class TestFit:
    def config(self, run):
        return yaml.safe_load(Path(run, "config.yaml").read_text())

    def test_options_are_kept_with_the_run(self, good, root):
        arguments = ("--split", "SS", "--features-file", "mine.mat", "--option", "train_on=trainval")
        good("fit", "cub", "--root", root, *arguments, "--method", "eszsl", "--out", "run")
        config = self.config("run")
        assert config["options"] == {"features": "mine.mat", "train_on": "trainval"}
        assert config["record"]["source"]["train_on"] == "trainval"
        assert set(config["record"]["source"]["files"]) == {"att_splits.mat", "mine.mat"}
        assert "cub SS (zsl, train_on=trainval, features=mine.mat, finished)" in good("show", "run").out
        good("evaluate", "run")

    def test_a_validation_fold_found_through_the_environment(self, good, bad, root, monkeypatch):
        monkeypatch.setenv("PREN_DATA", root)
        good("fit", "cub", "--option", "fold=1", "--method", "eszsl", "--out", "run")
        assert self.config("run")["record"]["source"]["fold"] == 1
        good("evaluate", "run")
        monkeypatch.delenv("PREN_DATA")
        assert bad("evaluate", "run").says("root-missing")

    def test_resuming_keeps_the_options_and_refuses_others(self, good, bad, root, small):
        good("fit", "cub", "--root", root, "--option", "fold=1", "--out", "run", *small)
        good("fit", "--resume", "run")
        assert bad("fit", "--resume", "run", "--option", "fold=null", "--root", root).says("other-run 1")

    def test_a_features_file_may_move(self, good, root):
        Path("xlsa17/data/CUB/mine.mat").rename("elsewhere.mat")
        good("fit", "cub", "--root", root, "--features-file", "./elsewhere.mat", "--method", "eszsl", "--out", "run")
        assert self.config("run")["options"]["features"] == str(Path("elsewhere.mat").absolute())
        Path("moved").mkdir()
        Path("elsewhere.mat").rename("moved/elsewhere.mat")
        good("fit", "--resume", "run", "--features-file", "moved/elsewhere.mat")

    def test_a_folder_of_images_may_move(self, good, root, photographs, small):
        Path("CUB_200_2011/images").rename("birds")
        network = (*small, "--set=backbone=small-cnn")
        good("fit", "cub", "--root", root, "--option", "images=birds", "--out", "run", *network)
        config = self.config("run")
        assert config["options"] == {"images": str(Path("birds").absolute())}
        assert config["record"]["source"]["images"] == {"listed": 43, "train": 25, "pool": 18}
        assert set(config["record"]["source"]["files"]) == {"att_splits.mat", "image_files.mat"}
        Path("birds").rename("CUB_200_2011/images")
        good("fit", "--resume", "run", "--option", "images=true")

    def test_options_in_a_file(self, good, root):
        Path("wanted.yaml").write_text("data: cub\nroot: .\nmethod: eszsl\noptions: {fold: 1, features: mine.mat}\n")
        good("fit", "--config", "wanted.yaml", "--setting", "gzsl", "--out", "run")
        assert self.config("run")["options"] == {"fold": 1, "features": "mine.mat"}

    @pytest.mark.parametrize(
        ("arguments", "refusal"),
        [
            (["--option", "fold"], "option-value --option 1 fold"),
            (["--option", "fold=9"], "fold-missing 9"),
            (["--option", "fold=[1"], "yaml --option 1"),
            (["--option", "fold=[1]"], "data-option-value 1"),
            (["--option", "folds=1"], "data-option-unknown folds"),
            (["--option", "seen_test=random"], "seen-test gzsl"),
            (["--option", "root=x"], "data-option-unknown root"),
            (["--option", "name=sun"], "data-option-unknown name"),
            (["--features-file", "none.mat"], "features-missing"),
            (["--option", "images=true"], "images-missing"),
            (["--option", "images=xlsa17"], "images-order"),
            (["--option", "images=true", "--features-file", "mine.mat"], "option-conflict"),
            (["--split", "XS"], "split-unknown"),
        ],
    )
    def test_mistakes(self, bad, root, arguments, refusal):
        assert bad("fit", "cub", "--root", root, "--method", "eszsl", "--out", "run", *arguments).says(refusal)
        assert not Path("run").exists()


@pytest.fixture
def sentences(root):
    """A second source of signatures for the same classes, beside the proposed split."""
    splits = {key: value for key, value in loadmat("xlsa17/data/CUB/att_splits.mat").items() if key[:2] != "__"}
    path = Path("xlsa17/data/CUB/sent_splits.mat")
    savemat(path, {**splits, "att": np.random.default_rng(3).random((7, 8))})
    return path


class TestSignatures:
    @staticmethod
    def fitted(run):
        config = yaml.safe_load(Path(run, "config.yaml").read_text())
        return config["options"].get("signatures"), config["record"]["source"]["signatures"]

    @pytest.mark.parametrize("split", ["PS", "SS"])
    def test_fit_and_evaluate(self, good, root, sentences, split):
        fit = ("fit", "cub", "--root", root, "--split", split, "--method", "ridge-s2v")
        good(*fit, "--out", "plain")
        assert self.fitted("plain")[0] is None
        for wanted, width in (("attributes", 6), ("sentences", 7), ("attributes,sentences", 13)):
            good(*fit, "--signatures", wanted, "--out", wanted)
            said, record = self.fitted(wanted)
            assert (said, record["width"]) == (wanted, width)
            good("evaluate", wanted)
        assert self.fitted("attributes")[1] == self.fitted("plain")[1]
        model = Path("plain/model.safetensors").read_bytes()
        assert Path("attributes/model.safetensors").read_bytes() == model

    def test_a_run_is_named_after_them(self, good, root, sentences):
        good("fit", "cub", "--root", root, "--method", "ridge-s2v", "--signatures", "sentences")
        assert Path("runs/cub-signatures=sentences-ridge-s2v-0").is_dir()

    def test_a_run_is_resumed_with_its_own(self, good, bad, root, sentences):
        good("fit", "cub", "--root", root, "--method", "ridge-s2v", "--signatures", "sentences", "--out", "run")
        resume = ("fit", "--resume", "run")
        good(*resume)
        assert bad(*resume, "--signatures", "attributes").says("other-run")

    def test_tune_and_compare(self, good, root, sentences, here):
        chosen = ("--root", root, "--split", "PS", "--signatures", "attributes,sentences")
        good("tune", "cub", "--method", "ridge-s2v", *chosen, "--trials", "1", "--set", "reg=7")
        folder = Path("tuning/cub-PS-attributes,sentences-ridge-s2v")
        params = yaml.safe_load((folder / "config.yaml").read_text())["params"]
        good("compare", "cub", *chosen, "--methods", "ridge-s2v", "--params", "tuning", "--out", "both")
        good("compare", "cub", *chosen[:-2], "--methods", "ridge-s2v", "--params", "tuning", "--out", "one")
        assert "cub PS attributes,sentences" in Path("both/table.csv").read_text()
        assert here == [("ridge-s2v", None)] * 2
        both, one = (json.loads(next(Path(out, "cells").iterdir()).read_text())["cell"] for out in ("both", "one"))
        assert both["params"] == params
        assert one["params"]["reg"] != 7, "what was chosen for other signatures"
        assert both["hashes"]["data"] != one["hashes"]["data"]

    def test_show(self, good, root, sentences):
        assert "Signatures: attributes (6), sentences (7)\n" in good("data", "show", "cub", "--root", root).out
        sentences.unlink()
        assert "Signatures: attributes (6)\n" in good("data", "show", "cub", "--root", root).out

    def test_mistakes(self, bad, root, sentences):
        fit = ("fit", "cub", "--root", root, "--method", "eszsl", "--out", "run", "--signatures")
        assert bad(*fit, "word").says("signatures-unknown word")
        sentences.unlink()
        message = "signatures-unknown sentences xlsa17/data/CUB/sent_splits.mat"
        assert bad(*fit, "attributes,sentences").says(message)
        assert not Path("run").exists()
        assert bad("fit", "numbers", "--signatures", "sentences").says("signatures-unknown sentences")

    def test_the_other_split_must_order_the_classes_alike(self, bad, root, sentences):
        path = Path("xlsa17/standard_split/CUB/att_splits.mat")
        splits = {key: value for key, value in loadmat(path).items() if key[:2] != "__"}
        savemat(path, {**splits, "allclasses_names": splits["allclasses_names"][::-1]})
        said = bad("fit", "cub", "--root", root, "--split", "SS", "--method", "eszsl", "--signatures", "sentences")
        assert said.says("signatures-order sent_splits.mat")
