"""``pren show``, ``pren evaluate``, ``pren list`` and ``pren --version``."""

import json
from pathlib import Path

import pytest

from pren.data import DATASETS
from pren.foundation.version import __version__
from pren.methods.registry import METHODS


def cells(line):
    return [cell for cell in line.split("  ") if cell.strip()]


class TestShow:
    def test_for_people(self, good, data, small):
        good("fit", data(), *small, "--seed", "3", "--out", "run")
        lines = good("show", "run").out.splitlines()
        metrics = json.loads(Path("run/metrics.json").read_text())
        assert lines[0] == "PrEN on data.npz (zsl, finished)"
        assert f"split {metrics['hashes']['split']}, seed 3" in lines
        shown = {line.split()[0]: line.split()[1] for line in lines if line.split() and len(line.split()) == 2}
        assert shown["heads"] == "4"
        assert shown["seed"] == "3"
        assert [line.split()[0] for line in lines[-3:]] == ["0", "1", "2"]

    def test_for_machines(self, good, data, small):
        fitted = json.loads(good("fit", data(), *small, "--out", "run", "--json").out)
        shown = json.loads(good("show", "run", "--json").out)
        history = shown.pop("history")
        assert shown == fitted
        assert [row["round"] for row in history] == [0, 1, 2]
        assert set(history[0]) == {"round", "loss", "pseudo_labels", "changed", "agreement"}

    def test_a_method_without_rounds(self, good, data):
        good("fit", data(), "--method", "eszsl", "--out", "run")
        out = good("show", "run").out
        assert out.startswith("ESZSL on data.npz (zsl, finished)")
        assert "feature_reg" in out
        assert "pseudo_labels" not in out
        assert json.loads(good("show", "run", "--json").out)["rounds_done"] is None

    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_labels_are_counted_for_the_candidates(self, good, data, setting):
        good("fit", data(), "--method", "eszsl", "--setting", setting, "--out", "run")
        counted = json.loads(good("show", "run", "--json").out)["labels"]["per_class"]
        classes = json.loads(good("classes", "list", "run", "--json").out)
        assert set(counted) == {row["class"] for row in classes if setting == "gzsl" or not row["seen"]}

    def test_it_needs_no_data(self, good, data):
        good("fit", data(), "--method", "eszsl", "--out", "run")
        Path("data.npz").unlink()
        assert "Top-1" in good("show", "run").out

    def test_it_changes_nothing(self, good, data, small, contents):
        good("fit", data(), *small, "--out", "run")
        before = contents()
        good("show", "run")
        good("evaluate", "run")
        assert contents() == before


class TestEvaluate:
    @pytest.mark.parametrize(("setting", "figures"), [("zsl", ["top1", "macc"]), ("gzsl", ["u", "s", "h", "ausuc"])])
    def test_for_people(self, good, data, small, setting, figures):
        good("fit", data(setting=setting), *small, "--setting", setting, "--out", "run")
        lines = good("evaluate", "run").out.splitlines()
        metrics = json.loads(Path("run/metrics.json").read_text())
        assert lines[1].split() == [f"{100 * metrics[key]:.1f}" for key in figures]
        table = lines[4 : 4 + len(metrics["per_class"])]
        for line, row in zip(table, metrics["per_class"], strict=True):
            assert line.startswith(row["name"])
            kind, images, correct, accuracy = line.removeprefix(row["name"]).split()
            assert kind == ("seen" if row["seen"] else "unseen")
            assert (int(images), int(correct)) == (row["images"], row["correct"])
            assert accuracy == f"{100 * row['accuracy']:.1f}"

    def test_for_machines(self, good, data, small):
        good("fit", data(), *small, "--out", "run")
        metrics = json.loads(good("evaluate", "run", "--json").out)
        written = json.loads(Path("run/metrics.json").read_text())
        assert metrics == written

    def test_how_many_confusions(self, good, data, arrays):
        content = arrays()
        answers = content["answers"].copy()
        answers[:9] = (answers[:9] - 5 + 1) % 3 + 5  # half of them wrong
        good("fit", data(answers=answers), "--method", "eszsl", "--out", "run")
        wrong = [
            cell
            for cell in json.loads(good("evaluate", "run", "--json").out)["confusion"]
            if cell["true"] != cell["predicted"]
        ]
        assert len(wrong) >= 2
        for count in (0, 1, 100):
            out = good("evaluate", "run", "--confused", count).out
            listed = out.partition("taken for")[2].splitlines()[1:]
            assert len(listed) == min(count, len(wrong))
            for line, cell in zip(listed, wrong, strict=False):
                assert line.split() == [*cell["true"].split(), *cell["predicted"].split(), str(cell["count"])]

    def test_data_without_answers(self, good, bad, data):
        good("fit", data(answers=None), "--method", "eszsl", "--out", "run")
        assert bad("evaluate", "run").says("no-answers")

    def test_data_that_changed_or_went_away(self, good, bad, data, arrays):
        good("fit", data(), "--method", "eszsl", "--out", "run")
        data(pool=arrays()["pool"] * 2)
        assert bad("evaluate", "run").says("data-changed")
        Path("data.npz").unlink()
        assert f"There is no file {Path('data.npz').absolute()}" in bad("evaluate", "run").message

    def test_data_that_moved(self, good, bad, data, arrays):
        good("fit", data(), "--method", "eszsl", "--out", "run")
        before = good("evaluate", "run").out
        Path("data.npz").rename("elsewhere.npz")
        assert good("evaluate", "run", "--data", "elsewhere.npz").out == before
        data(pool=arrays()["pool"] * 2)
        assert bad("evaluate", "run", "--data", "data.npz").says("data-changed")


class TestList:
    def test_methods(self, good):
        lines = good("list", "methods").out.splitlines()
        assert lines[0].split() == ["name", "what", "it", "is"]
        assert [line.split()[0] for line in lines[1:]] == list(METHODS)
        for line, entry in zip(lines[1:], METHODS.values(), strict=True):
            assert entry.summary in line

    def test_datasets(self, good):
        lines = good("list", "datasets").out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == sorted(DATASETS)

    def test_json(self, good):
        assert json.loads(good("list", "methods", "--json").out) == [
            {"name": entry.name, "summary": entry.summary} for entry in METHODS.values()
        ]
        assert [row["name"] for row in json.loads(good("list", "datasets", "--json").out)] == sorted(DATASETS)

    @pytest.mark.parametrize(
        ("kind", "pattern", "names"),
        [
            ("methods", "pren*", ["pren-vote", "pren-pool", "pren", "pren-no-projection"]),
            ("methods", "eszsl", ["eszsl"]),
            ("methods", "[es]*l*", ["eszsl"]),
            ("methods", "nothing", []),
            ("datasets", "*features", ["numbers-features"]),
            ("datasets", "y*", []),
        ],
    )
    def test_patterns(self, good, kind, pattern, names):
        found = [row["name"] for row in json.loads(good("list", kind, pattern, "--json").out)]
        assert [name for name in found if name in names] == found or names == []
        assert set(names) <= set(found)
        assert (not names) == (not found)

    def test_other_kinds(self, pren):
        result = pren("list", "things")
        assert result.code == 2
        assert "things" in result.err
        assert result.out == ""


class TestVersion:
    def test_it_is_printed(self, good):
        assert good("--version").out == f"pren {__version__}\n"

    def test_help_names_every_verb(self, good):
        out = good("--help").out
        for verb in ("demo", "fit", "tune", "compare", "evaluate", "predict", "suggest", "list", "show"):
            assert verb in out
            assert "Usage:" in good(verb, "--help").out
