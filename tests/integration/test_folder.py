"""A folder of one's own photographs on the command line: check, fit, show, evaluate, predict."""

import csv
import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from pren.data.describe import ENCODERS
from pren.label.predictions import header
from pren.runs.run import Progress, run_config

QUICK = (
    "--method=pren",
    "--set=backbone=small-cnn",
    "--set=rounds=1",
    "--set=heads=2",
    "--set=dim=2",
    "--set=hidden=[8]",
    "--set=batch_size=4",
    "--set=initial_batches=1",
    "--set=batches=1",
    "--set=n_max=2",
)


def table(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def same(*runs):
    """Whether runs have left the same."""
    names = ("model.safetensors", "history.csv", "pseudo_labels.csv", "predictions.csv", "metrics.json")
    contents = [{name: Path(run, name).read_bytes() for name in names if Path(run, name).exists()} for run in runs]
    return all(content == contents[0] for content in contents)


class TestFit:
    def test_from_photographs_to_labels(self, good, mydata):
        assert "finished" in good("fit", "mydata", *QUICK, "--out", "run").out
        config = yaml.safe_load(Path("run/config.yaml").read_text())
        assert config["data"] == str(mydata.absolute())
        assert config["record"]["source"]["name"] == "folder"
        assert set(config["record"]["source"]["files"]) == {"signatures.csv"}

        predictions = table("run/predictions.csv")
        assert predictions[0] == header(2)
        assert [row[0] for row in predictions[1:]] == ["0.png", "2.png", "4.png", "new/1.png", "new/3.png", "new/5.png"]
        assert {row[1] for row in predictions[1:]} <= {"yellow", "violet"}
        pseudo = table("run/pseudo_labels.csv")
        assert pseudo[0] == ["input", "class"]
        files = [row[0] for row in pseudo[1:]]
        assert files
        assert files == sorted(files)
        assert set(files) <= {row[0] for row in predictions[1:]}

        metrics = json.loads(Path("run/metrics.json").read_text())
        true = dict(table(mydata / "answers.csv")[1:])
        assert metrics["macc"] == pytest.approx(np.mean([true[file] == name for file, name, *_ in predictions[1:]]))
        assert "on mydata (zsl, finished)" in good("show", "run").out
        assert json.loads(good("evaluate", "run", "--json").out)["macc"] == metrics["macc"]

        good("predict", "run", "mydata/unlabelled", "--out", "labels.csv", "--top", "1")
        for (file, name, score, *_), (same_file, same_name, same_score, *_) in zip(
            predictions[1:], table("labels.csv")[1:], strict=True
        ):
            assert (file, name) == (same_file, same_name)
            assert float(score) == pytest.approx(float(same_score), abs=1e-5)

    def test_words_and_a_text_encoder(self, good, bad, mydata, monkeypatch):
        """Somebody's encoder: the words of a text, hashed into 16 columns."""

        def hashed(texts):
            table = np.zeros((len(texts), 16))
            for row, text in zip(table, texts, strict=True):
                for word in text.split():
                    row[hashlib.sha256(word.encode()).digest()[0] % 16] += 1
            return table

        (_, *colours), *classes = table(mydata / "signatures.csv")
        rows = [
            f"{name},{' '.join(c for c, n in zip(colours, row, strict=True) if int(n))}\n" for name, *row in classes
        ]
        (mydata / "descriptions.csv").write_text("class,description\n" + "".join(rows))
        (mydata / "signatures.csv").unlink()
        monkeypatch.setattr(ENCODERS, "_entries", {"hashed": hashed})
        assert bad("fit", "mydata", *QUICK, "--out", "run").says("unknown-name minilm")
        assert not Path("run").exists()
        assert "finished" in good("fit", "mydata", *QUICK, "--encoder", "hashed", "--out", "run").out
        config = yaml.safe_load(Path("run/config.yaml").read_text())
        assert config["options"] == {"encoder": "hashed", "signatures": "descriptions"}
        recorded = config["record"]["source"]["signatures"]
        assert (recorded["kind"], recorded["encoder"], recorded["width"]) == ("text", "hashed", 16)
        assert json.loads(good("evaluate", "run", "--json").out)["images"] == 6

        monkeypatch.setattr(ENCODERS, "_entries", {})  # a model carries its signatures, so it needs no encoder
        good("predict", "run", "mydata/unlabelled", "--out", "labels.csv", "--top", "1")
        assert [row[:2] for row in table("labels.csv")[1:]] == [row[:2] for row in table("run/predictions.csv")[1:]]

    def test_answers_have_no_part_in_what_is_learned(self, good, bad, mydata):
        good("fit", "mydata", *QUICK, "--out", "with")
        (mydata / "answers.csv").unlink()
        good("fit", "mydata", *QUICK, "--out", "without")
        assert not Path("without/metrics.json").exists()
        for name in ("model.safetensors", "pseudo_labels.csv", "predictions.csv"):
            assert Path("with", name).read_bytes() == Path("without", name).read_bytes()
        assert "finished" in good("show", "without").out
        assert bad("evaluate", "without").says("no-answers")

    def test_an_interrupted_run_goes_on_with_data_that_have_moved(self, good, pren, mydata, monkeypatch):
        good("fit", "mydata", *QUICK, "--out", "whole")

        def interrupted(*arguments, progress, **options):
            def stop(done, method):
                progress.on_round(done, method)
                raise KeyboardInterrupt

            return run_config(*arguments, progress=Progress(stop), **options)

        with monkeypatch.context() as patch:
            patch.setattr("pren.runs.run.run_config", interrupted)
            assert pren("fit", "mydata", *QUICK, "--out", "run").code == 130
        assert table("run/pseudo_labels.csv")[0] == ["input", "class"]
        Path("elsewhere").mkdir()
        mydata.rename("elsewhere/moved")
        Path("run/pseudo_labels.csv").unlink()
        good("fit", "elsewhere/moved", "--resume", "run")
        assert same("whole", "run")

    def test_other_photographs_are_not_the_same_data(self, good, bad, mydata):
        good("fit", "mydata", *QUICK, "--out", "run")
        shutil.copyfile(mydata / "images/red/0.png", mydata / "unlabelled/7.png")
        assert bad("fit", "--resume", "run").says("data-changed photographs")
        assert bad("evaluate", "run").says("data-changed photographs")
        (mydata / "unlabelled/7.png").unlink()
        (mydata / "labels.csv").write_text("file,class\n0.png,yellow\n")
        with (mydata / "signatures.csv").open("a") as table:
            table.write("white,1,1,1\n")
        assert bad("suggest", "run").says("data-changed labels.csv signatures.csv")

    def test_another_file_that_describes_the_classes_leaves_a_run_as_it_is(self, good, bad, mydata):
        """A new fit would take it."""
        (_, *_), *rows = table(mydata / "signatures.csv")
        (mydata / "classes.csv").write_text("\n".join(["class", *(name for name, *_ in rows), ""]))
        np.save(mydata / "vectors.npy", np.array([row for _, *row in rows], dtype=float) + 0.1)
        (mydata / "signatures.csv").rename("later.csv")
        good("fit", "mydata", *QUICK, "--out", "run")
        before = good("evaluate", "run", "--json").out
        shutil.copyfile("later.csv", mydata / "signatures.csv")
        assert good("evaluate", "run", "--json").out == before
        good("fit", "--resume", "run")
        for command in (["suggest", "run"], ["report", "run"], ["fit", "--continue", "run", "--out", "on"]):
            good(*command)
        assert yaml.safe_load(Path("on/config.yaml").read_text())["options"] == {"signatures": "vectors"}
        good("fit", "mydata", *QUICK, "--out", "new")
        assert yaml.safe_load(Path("new/config.yaml").read_text())["options"] == {"signatures": "attributes"}
        (mydata / "vectors.npy").unlink()
        assert bad("evaluate", "run").says("signatures-unknown vectors vectors.npy")

    def test_too_many_classes_are_refused_before_photographs_are_read(self, bad, mydata, monkeypatch):
        """No weights of this backbone are here: it would be the first to fail."""
        monkeypatch.setattr("pren.methods.pren_pool.MOST_UNSEEN", 1)
        assert bad("fit", "mydata", "--backbone", "resnet34", "--out", "run").says("classes-too-many 1 2 ridge-s2v")
        assert not Path("run").exists()

    def test_a_folder_with_mistakes_leaves_no_run(self, bad, mydata):
        (mydata / "images/red").rename(mydata / "images/rad")
        message = bad("fit", "mydata", *QUICK, "--out", "run")
        assert message.says("folder-unusable rad signatures.csv red")
        assert message.says("folder-unusable")
        assert not Path("run").exists()

    def test_what_is_no_folder(self, bad, mydata):
        assert bad("fit", "./mydta").says("file-missing")
        assert bad("fit", "mydta").says("unknown-name")
        assert bad("fit", "mydata/signatures.csv").says("data-unknown")
        assert bad("fit").says("data-missing")


class TestCheck:
    def test_nothing_is_wrong(self, good, mydata):
        (mydata / "images/notes.txt").write_text("")
        assert good("data", "check", "mydata").out.splitlines() == [
            "mydata: 3 seen and 2 unseen classes, 3 attributes",
            "6 labelled photographs, 6 unlabelled, 6 answers",
            "left out, not photographs: 1 .txt",
            "errors: 0, warnings: 0",
        ]

    def test_what_would_be_used(self, good, mydata, monkeypatch):
        monkeypatch.setattr(
            ENCODERS, "_entries", {"minilm": lambda texts: np.array([[len(text), 1] for text in texts])}
        )
        rows = [f"{name},it is {' '.join(row)}\n" for name, *row in table(mydata / "signatures.csv")[1:]]
        (mydata / "descriptions.csv").write_text("class,description\n" + "".join(rows))
        assert "described by attributes and descriptions; fit finds out" in good("data", "check", "mydata").out
        by_hand = good("data", "check", "mydata", "--signatures", "attributes,descriptions").out
        assert "described by attributes and descriptions (" in by_hand
        assert "described by" not in good("data", "check", "mydata", "--signatures", "descriptions").out

    def test_signatures_by_name(self, good, bad, mydata):
        expected = good("data", "check", "mydata").out
        assert good("data", "check", "mydata", "--signatures", "attributes").out == expected
        message = "signatures-unknown sentences signatures.csv"
        assert bad("data", "check", "mydata", "--signatures", "sentences").says(message)
        assert bad("fit", "mydata", *QUICK, "--signatures", "sentences", "--out", "run").says(message)
        assert not Path("run").exists()

    def plant(self, mydata):
        """A dozen mistakes; what is to be said of each begins with these words."""
        with (mydata / "signatures.csv").open("a") as file:
            file.write("grey,1,nan,1\nblack,0,0,0\nred,1,1,1\nbrown,1\npink,1,rosy,1\nwhite,1,1,1\n")
        with (mydata / "answers.csv").open("a") as file:
            file.write("../secret.png,violet\n0.png,violet\n9.png,violet\n7.png,voilet\n8.png,red\n")
        (mydata / "images/gren").mkdir()
        (mydata / "images/blue/bad.png").write_bytes(b"no image")
        (mydata / "images/blue/dead.png").symlink_to("nowhere")
        (mydata / "unlabelled/out.png").symlink_to(mydata.parent.absolute() / "secret.png")
        Image.new("RGB", (3, 3)).save("secret.png")
        os.mkfifo(mydata / "unlabelled/pipe\x1b[31m.png")
        shutil.copyfile(mydata / "images/red/0.png", mydata / "unlabelled/7.png")
        Image.new("RGB", (3, 3)).save(mydata / "unlabelled/8.png")
        return [
            "error signatures.csv, line 7: column 'green' is 'nan'",
            "error signatures.csv, line 8: the signature is all zeros",
            "error signatures.csv, line 9: class 'red' is already in line 2",
            "error signatures.csv, line 10: it has 2 fields",
            "error signatures.csv, line 11: column 'green' is 'rosy', not a finite number",
            "error images/blue/dead.png: it is a dead link",
            "error images/gren: it has no photographs",
            "error images/gren: class 'gren' has no row in signatures.csv. Did you mean 'green'?",
            "error unlabelled/out.png: it is a link that leads out of mydata",
            "error 'unlabelled/pipe\\x1b[31m.png': it is a pipe",
            "error answers.csv, line 8: there is no photograph '../secret.png' in unlabelled",
            "error answers.csv, line 9: '0.png' is already in line 2",
            "error answers.csv, line 10: there is no photograph '9.png' in unlabelled",
            "error answers.csv, line 11: class 'voilet' has no row in signatures.csv. Did you mean 'violet'?",
            "warning answers.csv, line 12: 'red' is a seen class",
            "warning images/blue/bad.png: it cannot be read as an image",
            "warning unlabelled/7.png: it is the same as 'images/red/0.png'",
        ]

    @pytest.mark.timeout(60)
    def test_everything_that_is_wrong_is_listed(self, pren, mydata):
        expected = self.plant(mydata)
        result = pren("data", "check", "mydata")
        assert result.code == 2
        assert result.err == ""
        assert "\x1b" not in result.out
        lines = result.out.splitlines()
        assert lines[-1] == "errors: 14, warnings: 3"
        assert len(lines) == len(expected) + 3
        for line, start in zip(lines, expected, strict=False):
            assert line.startswith(start)

    @pytest.mark.timeout(60)
    def test_json(self, pren, mydata):
        expected = self.plant(mydata)
        result = pren("data", "check", "mydata", "--json")
        assert result.code == 2
        report = json.loads(result.out)
        assert [problem["severity"] for problem in report["problems"]] == [line.split()[0] for line in expected]
        assert report["problems"][0]["file"] == "signatures.csv"
        assert report["problems"][0]["line"] == 7
        assert (report["seen"], report["images"], report["attributes"]) == (3, 7, 3)

    def test_warnings_alone_are_no_failure(self, good, mydata):
        shutil.copyfile(mydata / "images/red/0.png", mydata / "unlabelled/7.png")
        with (mydata / "answers.csv").open("a") as file:
            file.write("7.png,red\n")
        assert "errors: 0, warnings: 2" in good("data", "check", "mydata").out
        assert "errors: 0, warnings: 1" in good("data", "check", "mydata", "--setting", "gzsl").out
        result = good("fit", "mydata", *QUICK, "--out", "run")
        assert "'red' is a seen class" in " ".join(result.err.split())

    def test_there_must_be_a_folder(self, bad):
        assert bad("data", "check", "nowhere").says("file-missing")
