"""``pren suggest``: which photographs to label next."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

QUICK = "backbone=small-cnn rounds=1 heads=2 dim=2 hidden=[8] batch_size=4 initial_batches=1 batches=1 n_max=2".split()
POOL = {"0.png", "2.png", "4.png", "new/1.png", "new/3.png", "new/5.png"}


def table(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def fit(good, out, *arguments):
    return good("fit", "mydata", "--method=pren", *(f"--set={setting}" for setting in QUICK), *arguments, "--out", out)


@pytest.fixture
def suggest(good, mydata):
    """Run the command on a folder of photographs."""
    fit(good, "run")

    def run(*arguments):
        return good("suggest", "run", *arguments).out

    return run


class TestPhotographs:
    def test_they_are_named_with_their_label_and_the_runner_up(self, suggest):
        lines = suggest("--count", 2).splitlines()
        labels = {row[0]: row[1] for row in table("run/predictions.csv")}
        assert lines[0].split() == ["input", "label", "now", "runner-up", "sure,", "per", "cent"]
        for line in lines[1:3]:
            file, label, runner_up, sure = line.split()
            assert labels[file] == label
            assert {label, runner_up} == {"yellow", "violet"}
            assert sure == "-"
        assert lines[3:] == ["Add --out FILE.csv for a table to fill in."]

    def test_there_are_no_more_than_the_pool_has(self, suggest):
        assert {each["input"] for each in json.loads(suggest("--json"))["inputs"]} == POOL

    def test_fewer_are_the_first_ones(self, suggest):
        everyone, few = (json.loads(suggest("--json", "--count", count))["inputs"] for count in (6, 3))
        assert few == everyone[:3]

    def test_a_table_to_fill_in(self, suggest):
        said = suggest("--count", 3, "--out", "todo.csv").splitlines()[-1]
        assert "todo.csv" in said
        assert ", save it as mydata/labels.csv, and fit" in said
        header, *rows = table("todo.csv")
        assert header == ["file", "class", "label now", "runner-up"]
        assert len(rows) == 3
        labels = {row[0]: row[1] for row in table("run/predictions.csv")}
        for file, label, now, runner_up in rows:
            assert (label, now) == ("", labels[file])
            assert {now, runner_up} == {"yellow", "violet"}

    @pytest.mark.usefixtures("suggest")
    def test_a_table_for_data_elsewhere(self, good, mydata, monkeypatch):
        mydata, run = mydata.absolute(), Path("run").absolute()
        Path("elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")
        said = good("suggest", run, "--count", 3, "--out", "todo.csv").out.splitlines()[-1]
        assert f"save it as {mydata / 'labels.csv'}, and fit" in said

    def test_what_was_labelled_before_stays_in_the_table_and_is_not_suggested(self, suggest, good, mydata):
        """A label of a seen class, too, whose photograph has left the pool."""
        (mydata / "labels.csv").write_text("file,class\n0.png,yellow\nnew/5.png,\nnew/1.png,red\n")
        fit(good, "again")
        good("suggest", "again", "--out", "todo.csv")
        (_, *before), rows = table("todo.csv")[:3], table("todo.csv")[3:]
        assert before == [["0.png", "yellow", "", ""], ["new/1.png", "red", "", ""]]
        assert {row[0] for row in rows} == POOL - {"0.png", "new/1.png"}
        assert {row[1] for row in rows} == {""}
        Path("todo.csv").replace(mydata / "labels.csv")
        good("suggest", "again")  # nothing new is said yet: it is the same problem

    def test_names_like_formulas(self, good, mydata):
        """They are no formulas in what is written, and are known again in what is read."""
        for number, place in enumerate((0, 2, 4)):
            (mydata / "unlabelled" / f"{place}.png").rename(mydata / "unlabelled" / f"=cmd|'calc'!A{number}.png")
        (mydata / "answers.csv").unlink()
        signatures = (mydata / "signatures.csv").read_text().replace("yellow", "-1+2").replace("violet", "@SUM(A1)")
        (mydata / "signatures.csv").write_text(signatures)
        said = fit(good, "run").out
        (_, *rows), formulas = table("run/predictions.csv"), ("=", "-", "@")
        assert not any(cell.startswith(formulas) for row in rows for cell in (row[0], row[1]))
        assert {row[1] for row in rows} <= {"'-1+2", "'@SUM(A1)"}
        assert "-1+2 (" in said
        assert "'-1+2" not in said
        good("predict", "run", mydata / "unlabelled", "--out", "labels.csv", "--top", "2")
        assert not any(
            cell.startswith(formulas) for row in table("labels.csv")[1:] for cell in (row[0], row[1], row[5])
        )
        good("suggest", "run", "--out", "todo.csv")
        files = [row[0] for row in table("todo.csv")[1:]]
        assert {file for file in files if "cmd" in file} == {f"'=cmd|'calc'!A{number}.png" for number in range(3)}
        lines = Path("todo.csv").read_text().splitlines()
        (mydata / "labels.csv").write_text("\n".join([lines[0], *(line.replace('""', "'-1+2") for line in lines[1:])]))
        assert "6 labels given" in good("data", "check", mydata).out

    def test_nothing_is_left_to_label(self, suggest, good, mydata):
        answers = (mydata / "answers.csv").read_text()
        (mydata / "labels.csv").write_text(answers)
        fit(good, "again")
        assert good("suggest", "again").out == "Every input of the pool has a label already.\n"

    def test_images_that_are_held_out_are_not_for_labelling(self, good, bad, mydata):
        said = fit(good, "run", "--setting=gzsl", "--hold-out=0.5").out
        assert "fit again without --hold-out" in said
        assert bad("suggest", "run").says("hold-out")

    def test_a_table_that_is_in_its_place(self, suggest):
        out = suggest("--out", "mydata/labels.csv")
        assert "mydata/labels.csv" in out
        assert "save it as" not in out

    def test_nothing_is_overwritten(self, suggest, bad):
        Path("labels.csv").write_text("hours of work")
        assert bad("suggest", "run", "--out", "labels.csv").says("out-taken labels.csv")
        assert Path("labels.csv").read_text() == "hours of work"

    def test_data_that_have_moved(self, suggest, mydata):
        before = suggest()
        mydata.rename("elsewhere")
        assert suggest("--data", "elsewhere") == before

    def test_a_table_for_data_that_have_moved_keeps_what_was_labelled_there(self, good, mydata):
        (mydata / "labels.csv").write_text("file,class\n0.png,yellow\n")
        fit(good, "run")
        mydata.rename("elsewhere")
        said = good("suggest", "run", "--data", "elsewhere", "--out", "todo.csv").out
        assert "save it as elsewhere/labels.csv" in said
        assert table("todo.csv")[1] == ["0.png", "yellow", "", ""]


class TestFeatures:
    def test_images_without_names_have_places(self, good, data, arrays):
        good("fit", data(), "--method", "pren-pool", "--out", "run")
        found = json.loads(good("suggest", "run", "--json", "--count", 5).out)["inputs"]
        places = [int(each["input"]) for each in found]
        assert len(set(places)) == 5
        assert max(places) < len(arrays()["pool"])

    def test_labels_are_as_sure_as_the_run_says(self, good, data):
        good("fit", data(), "--method", "eszsl", "--rehearsals", 2, "--out", "run")
        found = json.loads(good("suggest", "run", "--json").out)["inputs"]
        with Path("run/predictions.csv").open(newline="") as file:
            known = {row["input"]: row for row in csv.DictReader(file)}
        for each in found:
            assert each["label"] == known[each["input"]]["class"]
            assert each["confidence"] == pytest.approx(float(known[each["input"]]["confidence"]), abs=1e-4)

    def test_there_is_no_table_to_fill_in(self, good, bad, data):
        good("fit", data(), "--method", "eszsl", "--out", "run")
        assert bad("suggest", "run", "--out", "labels.csv").says("no-labels-file labels.csv")
        assert not Path("labels.csv").exists()

    def test_a_run_of_other_data(self, good, bad, data):
        good("fit", data(), "--method", "eszsl", "--out", "run")
        data(setting="gzsl")
        assert bad("suggest", "run").says("data-changed")


def test_no_run(bad):
    assert bad("suggest", "nowhere").says("not-a-run")


def test_what_looks_like_none_of_the_classes_is_not_suggested(good, make_problem):
    made = make_problem(n_seen=12, n_unseen=4, shape=(40,), per_class=20, pool_per_class=20)
    pool = made.pool[np.arange(80)].numpy()
    strange = list(range(0, 80, 10))
    pool[strange] = 50 * np.sign(np.random.default_rng(0).normal(size=(8, 40)))
    arrays = {"features": made.train[np.arange(240)].numpy(), "labels": made.labels}
    np.savez("my.npz", **arrays, signatures=made.classes.signatures, pool=pool)
    good("fit", "my.npz", "--rehearsals=2", "--out=run")
    found = json.loads(good("suggest", "run", "--count=80", "--json").out)["inputs"]
    assert not {int(each["input"]) for each in found} & set(strange)
    assert len(found) > 60
