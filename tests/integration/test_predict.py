"""``pren predict``: new inputs, from files and from folders of images."""

import csv
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

from pren.images.files import ImageFolder, save_images
from pren.images.preprocessing import plain
from pren.methods.storage import load_model
from pren.problem.inputs import ArrayInputs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where runs are kept for other tests."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def run(good, data, small, kept):
    """A run folder, with features or images; each is fitted once and copied."""

    def fit(form="features", setting="zsl"):
        name, original = data(form, setting), kept / f"{form}-{setting}"
        if not original.exists():
            images = ["--set=backbone=small-cnn"] if form == "images" else []
            good("fit", name, *small, *images, "--setting", setting, "--out", original)
        shutil.copytree(original, "run")
        return "run"

    return fit


def rows(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def expected(inputs, names, among, top):
    """The whole table by plain loops."""
    model = load_model("run")
    scores = model.scores(inputs)
    seen = model.classes_.seen
    candidates = [c for c in range(8) if among == "all" or seen[c] == (among == "seen")]
    more = [f"{what}_{rank}" for rank in range(2, min(top, len(candidates)) + 1) for what in ("class", "score")]
    table = [["input", "class", "score", "confidence", "familiarity", *more, "error"]]
    for place, name in enumerate(names):
        best = sorted(candidates, key=lambda c, place=place: -scores[place, c])[:top]
        first, second, *others = [
            cell for c in best for cell in (model.classes_.names[c], repr(float(scores[place, c])))
        ]
        table.append([name, first, second, "", "", *others, ""])  # PrEN is not rehearsed unasked
    return table


class TestTables:
    def test_an_array_file(self, good, run, arrays):
        run()
        pool = arrays()["pool"]
        np.save("new.npy", pool)
        out = good("predict", "run", "new.npy", "--out", "labels.csv").out
        assert "18 predictions are in labels.csv." in out
        assert rows("labels.csv") == expected(pool, map(str, range(18)), "unseen", 5)

    def test_the_best_class_is_what_the_run_said_of_its_pool(self, good, run, arrays):
        run(setting="gzsl")
        np.save("new.npy", arrays(setting="gzsl")["pool"])
        good("predict", "run", "new.npy", "--out", "labels.csv", "--top", "2")
        assert rows("labels.csv") == rows("run/predictions.csv")

    @pytest.mark.parametrize("key", ["features", "inputs", "anything"])
    def test_a_file_of_named_arrays(self, good, run, arrays, key):
        run()
        np.savez("new.npz", **{key: arrays()["pool"]})
        good("predict", "run", "new.npz", "--out", "labels.csv", "--top", "2")
        assert rows("labels.csv") == expected(arrays()["pool"], map(str, range(18)), "unseen", 2)

    @pytest.mark.parametrize("among", ["unseen", "seen", "all"])
    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    @pytest.mark.parametrize("top", [1, 4, 1000])
    def test_top_and_among(self, good, run, arrays, among, setting, top):
        run(setting=setting)
        pool = arrays()["pool"]
        np.save("new.npy", pool)
        good("predict", "run", "new.npy", "--out", "labels.csv", "--top", top, "--among", among)
        assert rows("labels.csv") == expected(pool, map(str, range(18)), among, top)

    def test_the_candidates_are_by_default_those_of_the_setting(self, good, run, arrays):
        run(setting="gzsl")
        np.save("new.npy", arrays()["pool"])
        good("predict", "run", "new.npy", "--out", "labels.csv")
        assert rows("labels.csv") == expected(arrays()["pool"], map(str, range(18)), "all", 5)

    def test_json(self, good, run, arrays):
        run()
        np.save("new.npy", arrays()["pool"])
        out = good("predict", "run", "new.npy", "--out", "labels.csv", "--top", "100", "--json").out
        assert json.loads(out) == {"inputs": 18, "unreadable": 0, "unsure": 0, "top": 3, "out": "labels.csv"}

    def test_images_in_an_array(self, good, run, arrays):
        run("images")
        np.save("new.npy", arrays("images")["pool"])
        good("predict", "run", "new.npy", "--out", "labels.csv")
        assert rows("labels.csv") == expected(arrays("images")["pool"], map(str, range(18)), "unseen", 5)

    def test_a_folder_of_images(self, good, run, arrays):
        run("images")
        pool = ArrayInputs(arrays("images")["pool"].clip(0, 1))
        save_images(pool, np.arange(4), "new")
        save_images(pool, np.arange(4, 7), "new/deeper")
        Path("new/notes.txt").write_text("no image")
        good("predict", "run", "new", "--out", "labels.csv", "--top", "2")
        names = [f"deeper/image-000{n}.png" for n in range(3)] + [f"image-000{n}.png" for n in range(4)]
        assert rows("labels.csv") == expected(ImageFolder("new", plain((1, 8, 12))), names, "unseen", 2)

    def test_no_inputs_are_no_rows(self, good, run):
        run()
        np.save("new.npy", np.empty((0, 6)))
        good("predict", "run", "new.npy", "--out", "labels.csv")
        assert len(rows("labels.csv")) == 1

    def test_nothing_but_the_table_is_written(self, good, run, arrays, contents):
        run()
        np.save("new.npy", arrays()["pool"])
        before = contents()
        good("predict", "run", "new.npy", "--out", "labels.csv")
        assert {name: content for name, content in contents().items() if name != "labels.csv"} == before


class TestSources:
    @pytest.fixture
    def new(self, arrays):
        return save_images(ArrayInputs(arrays("images")["pool"].clip(0, 1)), np.arange(4), "new")

    def test_a_folder_a_list_and_a_shard_give_the_same(self, good, run, new):
        run("images")
        Path("list.txt").write_text("".join(f"{path.name}\n" for path in new))
        shutil.move("list.txt", "new/list.txt")
        with tarfile.open("new.tar", "w") as archive:
            for path in new:
                archive.add(path, path.name)
        tables = []
        for number, source in enumerate(("new", "new/list.txt", "new.tar")):
            good("predict", "run", source, "--out", f"{number}.csv")
            tables.append(rows(f"{number}.csv"))
        assert tables[0] == tables[1] == tables[2]
        Path("new/again.csv").write_bytes(Path("0.csv").read_bytes())  # a table of ours is a list too
        good("predict", "run", "new/again.csv", "--column", "input", "--out", "3.csv")
        assert rows("3.csv") == tables[0]

    def test_a_column(self, good, run, new):
        run("images")
        Path("list.csv").write_text("file,other\nnew/image-0002.png,1\nnowhere.png,2\n")
        good("predict", "run", "list.csv", "--column", "file", "--out", "labels.jsonl", "--top", "1")
        found = [json.loads(line) for line in Path("labels.jsonl").read_text().splitlines()]
        assert [row["input"] for row in found] == ["new/image-0002.png", "nowhere.png"]
        assert "No such file" in found[1]["error"]

    def test_a_hostile_shard(self, good, bad, run, new, contents):
        run("images")
        with tarfile.open("new.tar", "w") as archive:
            archive.add(new[0], "../../out.png", filter=lambda member: member)
            archive.add(new[1], "good.png")
        before = contents()
        good("predict", "run", "new.tar", "--out", "labels.csv")
        assert {name: content for name, content in contents().items() if name != "labels.csv"} == before
        _, hostile, fine = rows("labels.csv")
        assert "leads out" in hostile[-1]
        assert fine[1]
        Path("half.tar").write_bytes(Path("new.tar").read_bytes()[:900])
        assert bad("predict", "run", "half.tar", "--out", "more.csv").says("tar-unreadable half.tar")

    def test_formats(self, good, bad, run, new):
        run("images")
        good("predict", "run", "new", "--out", "tasks.json", "--format", "label-studio")
        assert len(json.loads(Path("tasks.json").read_text())) == 4
        assert bad("predict", "run", "new", "--out", "labels.txt").says("unknown-format")
        assert bad("predict", "run", "new", "--format", "csv").says("option-conflict --out")


class TestSorting:
    @pytest.mark.parametrize("how", [(), ("--sort-as", "symlink"), ("--sort-as", "copy")])
    def test_a_folder_per_class(self, good, run, arrays, how):
        run("images")
        save_images(ArrayInputs(arrays("images")["pool"].clip(0, 1)), np.arange(5), "new")
        Path("new/bad.png").write_bytes(b"garbage")
        out = good("predict", "run", "new", "--sort-into", "sorted", *how).out
        assert "The photographs are sorted into sorted." in out
        table = {row[0]: row[1] for row in rows("sorted/labels.csv")[1:]}
        assert table.pop("bad.png") == ""
        found = {path.name: path.parent.name for path in Path("sorted").rglob("*.png")}
        assert found == table

    def test_refused(self, bad, run, arrays):
        run("images")
        save_images(ArrayInputs(arrays("images")["pool"].clip(0, 1)), np.arange(2), "new")
        assert bad("predict", "run", "new", "--sort-into", "new/sorted").says("sort-into-source")
        np.save("new.npy", arrays("images")["pool"])
        assert bad("predict", "run", "new.npy", "--sort-into", "sorted").says("no-photographs")
        assert not Path("sorted").exists()


class TestInterrupted:
    def test_the_same_command_goes_on(self, pren, good, run, arrays, monkeypatch):
        run()
        np.save("new.npy", arrays()["pool"])
        monkeypatch.setattr("pren.label.job.ROWS", 5)
        good("predict", "run", "new.npy", "--out", "whole.csv")
        with monkeypatch.context() as patch:
            patch.setattr("pren.label.job._join", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            result = pren("predict", "run", "new.npy", "--out", "labels.csv")
        assert result.code == 130
        assert "kept in labels.csv.parts: the same command" in result.err
        assert "18 of 18 inputs are labelled already" in good("predict", "run", "new.npy", "--out", "labels.csv").err
        assert rows("labels.csv") == rows("whole.csv")
        assert not Path("labels.csv.parts").exists()

    def test_another_command_does_not(self, pren, bad, run, arrays, monkeypatch):
        run()
        np.save("new.npy", arrays()["pool"])
        with monkeypatch.context() as patch:
            patch.setattr("pren.label.job._join", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            pren("predict", "run", "new.npy", "--out", "labels.csv")
        message = bad("predict", "run", "new.npy", "--out", "labels.csv", "--top", "1")
        assert message.says("parts-other labels.csv")


class TestWithoutAFile:
    def test_one_photograph(self, good, run, arrays):
        run("images")
        save_images(ArrayInputs(arrays("images")["pool"].clip(0, 1)), np.arange(2), "new")
        lines = good("predict", "run", "new/image-0001.png", "--top", "2").out.splitlines()
        good("predict", "run", "new", "--top", "2", "--out", "labels.csv")
        table = rows("labels.csv")
        first, second = (table[2][table[0].index(column)] for column in ("class", "class_2"))
        assert [line.split()[:-1] for line in lines[1:]] == [["new/image-0001.png", *first.split()], second.split()]

    def test_several_photographs_and_folders(self, good, run, arrays):
        run("images")
        pool = ArrayInputs(arrays("images")["pool"].clip(0, 1))
        save_images(pool, np.arange(2), "new")
        save_images(pool, np.arange(2, 4), "more")
        found = json.loads(good("predict", "run", "new/image-0001.png", "more", "--json").out)
        assert [row["input"] for row in found["predictions"]] == [
            "new/image-0001.png",
            "more/image-0000.png",
            "more/image-0001.png",
        ]
        assert (found["inputs"], found["unreadable"], found["top"]) == (3, 0, 3)

    def test_one_that_cannot_be_read_says_so(self, good, run, arrays):
        run("images")
        save_images(ArrayInputs(arrays("images")["pool"].clip(0, 1)), np.arange(1), "new")
        Path("new/bad.png").write_bytes(b"garbage")
        lines = good("predict", "run", "new", "--top", "1").out.splitlines()
        assert lines[1].split() == ["bad.png", "cannot", "be", "read"]
        found = json.loads(good("predict", "run", "new", "--json").out)
        assert found["predictions"][0]["classes"] == []
        assert "cannot be read as an image" in found["predictions"][0]["error"]

    def test_a_folder_with_a_model_alone(self, good, run, arrays):
        run()
        np.save("new.npy", arrays()["pool"])
        load_model("run").save("model")
        assert good("predict", "model", "new.npy").out == good("predict", "run", "new.npy").out


class TestRefused:
    def test_an_output_that_is_there_already(self, good, bad, run, arrays, contents):
        run()
        np.save("new.npy", arrays()["pool"])
        Path("labels.csv").write_text("precious")
        Path("folder").mkdir()
        before = contents()
        for out in ("labels.csv", "folder", "run/predictions.csv", "new.npy"):
            assert out in bad("predict", "run", "new.npy", "--out", out).message
        assert contents() == before

    def test_an_output_that_cannot_be_written(self, bad, run, arrays, contents):
        run()
        np.save("new.npy", arrays()["pool"])
        before = contents()
        for out in ("nowhere/labels.csv", "new.npy/labels.csv", "x" * 300):
            assert bad("predict", "run", "new.npy", "--out", out).code in ("file", "write-failed")
        assert contents() == before

    @pytest.mark.parametrize(
        ("array", "refusal"),
        [
            (np.zeros((2, 7)), "inputs-shape 6 7"),
            (np.zeros(6), "inputs-shape new.npy"),
            (np.zeros((2, 1, 8, 12)), "inputs-shape 6 1 8"),
            (np.array([["a"] * 6]), "inputs-kind"),
            (np.full((2, 6), np.nan), "not-finite 0"),
            (np.array([[0.0] * 6, [np.inf] * 6]), "not-finite 1"),
        ],
    )
    def test_inputs_that_do_not_fit(self, bad, run, array, refusal):
        run()
        np.save("new.npy", array)
        assert bad("predict", "run", "new.npy", "--out", "labels.csv").says(refusal)
        assert not Path("labels.csv").exists()

    def test_inputs_that_cannot_be_read(self, bad, run, arrays):
        run()
        Path("new.csv").write_text("1,2")
        Path("new.npy").write_bytes(b"garbage")
        np.save("objects.npy", np.array([{}], dtype=object))
        np.savez("several.npz", one=np.zeros((2, 6)), two=np.zeros((2, 6)))
        np.savez("none.npz")
        Path("empty").mkdir()
        for name, message in {
            "new.csv": "column-unknown new.csv --column 1",
            "nowhere.npy": "file-missing nowhere.npy",
            "nowhere": "file-missing",
            "new.npy": "array-unreadable new.npy",
            "objects.npy": "array-unreadable objects.npy",
            "several.npz": "array-choice",
            "none.npz": "array-choice none.npz",
            "empty": "no-photographs",
        }.items():
            assert bad("predict", "run", name, "--out", "labels.csv").says(message)
        assert not Path("labels.csv").exists()

    def test_images_that_cannot_be_read(self, bad, run, arrays):
        run("images")
        Path("empty").mkdir()
        assert bad("predict", "run", "empty", "--out", "labels.csv").says("no-photographs")
        Path("new").mkdir()
        Path("new/image.png").write_bytes(b"garbage")
        assert bad("predict", "run", "new", "--out", "labels.csv").says("input-unreadable new/image.png")
        Path("new/more.png").write_bytes(b"")
        assert bad("predict", "run", "new", "--out", "labels.csv").says("input-unreadable 2 new/image.png")
        assert not Path("labels.csv").exists()

    def test_one_image_that_cannot_be_read_costs_no_other(self, good, run, arrays):
        run("images")
        save_images(ArrayInputs(arrays("images")["pool"]), np.arange(2), "new")
        Path("new/image-0000a.png").write_bytes(b"garbage")
        result = good("predict", "run", "new", "--out", "labels.csv")
        assert "image-0000a.png cannot be read as an image" in result.err
        table = rows("labels.csv")[1:]
        assert [row[0] for row in table] == ["image-0000.png", "image-0000a.png", "image-0001.png"]
        assert [row[1] != "" for row in table] == [True, False, True]
        assert ["cannot be read as an image" in row[-1] for row in table] == [False, True, False]
        assert "3 predictions are in labels.csv. 1 of them cannot be read." in result.out

    def test_candidates_that_there_are_not(self, bad, run, arrays):
        run()
        np.save("new.npy", arrays()["pool"])
        message = bad("predict", "run", "new.npy", "--out", "labels.csv", "--among", "novel")
        assert message.says("unknown-name novel")
        assert not Path("labels.csv").exists()

    def test_fewer_than_one_class(self, pren, run, arrays):
        run()
        np.save("new.npy", arrays()["pool"])
        result = pren("predict", "run", "new.npy", "--out", "labels.csv", "--top", "0")
        assert result.code == 2
        assert "--top" in result.err

    def test_no_run(self, bad, arrays):
        np.save("new.npy", arrays()["pool"])
        assert bad("predict", "nowhere", "new.npy", "--out", "labels.csv").says("not-a-run")
