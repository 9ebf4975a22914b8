"""Comparisons: every cell once, whatever happens; cells are computed in this process here."""

import json

import numpy as np
import pytest
from refusals import refused

from pren.foundation.errors import PrenError
from pren.methods.rivals.eszsl import ESZSL
from pren.research import comparison
from pren.research.comparison import ComparisonPlan, compare
from pren.research.parameters import Parameters

pytestmark = pytest.mark.slow

SMALL = Parameters({"progressive": {"rounds": 1, "initial_batches": 4, "batches": 1, "hidden": [4]}})
BOTH = ["progressive", "eszsl"]


@pytest.fixture
def plan(config):
    def build(methods=BOTH, seeds=2, setting="zsl", **replaced):
        return ComparisonPlan([config(setting=setting, **replaced)], methods, seeds, SMALL)

    return build


def test_rows_tables_and_chart(plan, here, tmp_path):
    rows = compare(plan(), tmp_path / "out")
    assert here == [("progressive", 0), ("progressive", 1), ("eszsl", None)]
    assert [(row.data, row.method, row.runs, row.failed) for row in rows] == [
        ("data", "Progressive Training", 2, 0),
        ("data", "ESZSL", 1, 0),
    ]
    assert rows[0].figures["top1"].std is not None
    assert rows[1].figures["top1"].std is None
    assert (rows[0].given, rows[1].given) == (True, False)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"cells", "table.md", "table.tex", "table.csv", "chart.png", "chart.svg"}
    assert "| ESZSL |" in (tmp_path / "out" / "table.md").read_text()


def test_nothing_is_computed_twice(plan, here, tmp_path):
    first = compare(plan(), tmp_path / "out")
    count = len(here)
    assert compare(plan(), tmp_path / "out") == first
    assert len(here) == count
    compare(plan(seeds=3), tmp_path / "out")
    assert here[count:] == [("progressive", 2)]
    compare(plan(answers=plan().data[0].load_data()[1].labels[::-1]), tmp_path / "out")
    assert len(here) == count + 1 + 3, "other answers are other data"


def test_what_is_stored_is_shown_without_computing(plan, here, tmp_path):
    compare(plan(methods=["progressive"]), tmp_path / "out")
    count = len(here)
    rows = compare(plan(seeds=3), tmp_path / "out", stored=True)
    assert len(here) == count
    assert [(row.runs, row.note()) for row in rows] == [(2, ""), (0, "not computed")]
    assert rows[0].figures["top1"] is not None
    assert "not computed" in (tmp_path / "out" / "table.md").read_text()


def test_killed_and_continued(plan, here, tmp_path):
    def interrupt(done, total, task, result):
        assert total == 3
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(plan(), tmp_path / "out", on_cell=interrupt)
    assert not (tmp_path / "out" / "table.md").exists()
    rows = compare(plan(), tmp_path / "out")
    assert here == [("progressive", 0), ("progressive", 1), ("eszsl", None)]
    assert len(rows) == 2


def test_a_method_that_fails_does_not_stop_the_others(plan, here, monkeypatch, tmp_path):
    with monkeypatch.context() as broken:
        broken.setattr(ESZSL, "_fit", lambda self, problem: (_ for _ in ()).throw(PrenError("planted", "no | luck")))
        rows = compare(plan(["eszsl", "progressive"]), tmp_path / "out")
    assert [row.failed for row in rows] == [1, 0]
    assert "failed: no \\| luck" in (tmp_path / "out" / "table.md").read_text()
    assert compare(plan(["eszsl"]), tmp_path / "out")[0].reason == "no | luck"
    count = len(here)
    assert compare(plan(["eszsl"]), tmp_path / "out", retry=True)[0].failed == 0
    assert here[count:] == [("eszsl", None)]


def test_several_data_sets(config, here, tmp_path):
    wanted = [
        config(file="a.npz"),
        config(file="b.npz"),
        config(file="c.npz", pool=config().load_data()[0].pool[[0]].numpy(), answers=None),
    ]
    rows = compare(ComparisonPlan(wanted[:2], ["eszsl"]), tmp_path / "out")
    assert [row.data for row in rows] == ["a", "b"]
    assert here == [("eszsl", None)], "the same data under two names"
    with refused("no-answers"):
        compare(ComparisonPlan(wanted, ["eszsl"]), tmp_path / "out")


def test_answers_that_nobody_knows_are_found_out_before_anything_is_computed(config, here, tmp_path):
    with refused("no-answers"):
        compare(ComparisonPlan([config(answers=np.full(18, -1))], ["eszsl"]), tmp_path / "out")
    assert here == []


def test_files_of_the_same_name_are_told_apart(config, tmp_path):
    one, two = config(), config().model_copy(update={"data": str(tmp_path / "x" / "data.npz")})
    assert comparison._titles([one, two]) == [one.data, two.data]
    assert comparison._titles([one]) == ["data"]


def test_nothing_to_compare(config, tmp_path):
    with refused("nothing-to-compare"):
        compare(ComparisonPlan([config()], []), tmp_path / "out")


def test_a_damaged_cell_is_named(plan, here, tmp_path):
    compare(plan(["eszsl"]), tmp_path / "out")
    (path,) = (tmp_path / "out" / "cells").iterdir()
    path.write_text(json.dumps({}))
    with refused("damaged"):
        compare(plan(["eszsl"]), tmp_path / "out")


def test_a_folder_with_something_else(plan, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("mine")
    with refused("out-taken"):
        compare(plan(), tmp_path / "out")
