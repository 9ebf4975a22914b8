"""Cells: what makes them the same, what they compute, and how they are kept."""

import json

import pytest
from refusals import refused

from pren.evaluation import evaluate_scores
from pren.research.cells import Result, compute, data_hashes, make_task, peak_memory
from pren.research.store import Store


@pytest.fixture
def task(config):
    def build(method="eszsl", setting="zsl", seed=None, params=None, **replaced):
        wanted = config(method, setting, params, **replaced)
        return make_task(wanted, data_hashes(*wanted.load_data()), seed)

    return build


class TestIdentity:
    def test_the_same_cell_has_the_same_key(self, task):
        assert task().cell.key() == task().cell.key()

    def test_where_the_data_are_does_not_matter(self, task):
        assert task(file="other.npz").cell.key() == task().cell.key()

    @pytest.mark.parametrize(
        "other",
        [
            {"params": {"feature_reg": 2.0}},
            {"setting": "gzsl"},
            {"method": "progressive", "seed": 0},
            {"pool": "changed"},
            {"answers": "changed"},
        ],
        ids=str,
    )
    def test_whatever_changes_a_result_changes_the_key(self, task, arrays, other):
        replaced = {key: arrays()[key][::-1] for key in ("pool", "answers") if key in other}
        assert task(**{**other, **replaced}).cell.key() != task().cell.key()

    def test_the_seed_is_a_parameter(self, task):
        one, two = task("progressive", seed=1), task("progressive", seed=2)
        assert one.cell.params["seed"] == 1
        assert one.cell.key() != two.cell.key()

    def test_parameters_left_out_are_written_out(self, task):
        assert task(params={"feature_reg": 1.0}).cell.key() == task().cell.key()


class TestCompute:
    @pytest.mark.parametrize(("setting", "names"), [("zsl", {"top1", "macc"}), ("gzsl", {"u", "s", "h", "ausuc"})])
    def test_figures_are_those_of_the_method(self, task, setting, names):
        wanted = task(setting=setting)
        result = compute(wanted)
        problem, answers = wanted.config.load_data()
        scores = wanted.config.create_method().fit(problem).scores(problem.pool)
        metrics = evaluate_scores(scores, answers, problem.classes, setting)
        by_images = metrics.by_images() if setting == "gzsl" else {}
        assert result.figures == {**{name: getattr(metrics, name) for name in names}, **by_images}
        assert result.error is None
        assert result.fit_seconds >= 0
        assert 1e7 < result.peak_bytes <= peak_memory()

    def test_data_that_changed_meanwhile(self, task, data, arrays):
        wanted = task()
        data(pool=arrays()["pool"] * 2)
        with refused("data-changed"):
            compute(wanted)


class TestStore:
    def test_a_result_comes_back(self, task, tmp_path):
        cell, result = task().cell, Result(figures={"top1": 0.1 + 0.2, "macc": None}, fit_seconds=1.5, peak_bytes=3)
        assert Store(tmp_path).get(cell) is None
        Store(tmp_path).put(cell, result)
        assert Store(tmp_path).get(cell) == result
        assert Store(tmp_path).get(task(params={"gamma": 1.0}).cell) is None

    def test_what_is_kept_is_small_text(self, task, tmp_path):
        Store(tmp_path).put(task().cell, Result(error="why"))
        (path,) = (tmp_path / "cells").iterdir()
        assert json.loads(path.read_text())["result"]["error"] == "why"

    @pytest.mark.parametrize("content", ["", "{}", "null", '{"cell": 1, "result": 2}'])
    def test_damage_is_named(self, task, content, tmp_path):
        store, cell = Store(tmp_path), task().cell
        store.put(cell, Result())
        (path,) = (tmp_path / "cells").iterdir()
        path.write_text(content)
        with refused("damaged"):
            store.get(cell)

    def test_the_result_of_another_cell(self, task, tmp_path):
        store, cell, other = Store(tmp_path), task().cell, task(params={"gamma": 1.0}).cell
        store.put(other, Result())
        (path,) = (tmp_path / "cells").iterdir()
        path.rename(tmp_path / "cells" / f"eszsl-{cell.key()}.json")
        with refused("damaged"):
            store.get(cell)
