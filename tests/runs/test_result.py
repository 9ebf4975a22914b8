"""The result of a run: what it says, and that a folder, memory and `pren predict` agree."""

import json
import sys

import numpy as np
import pytest
from refusals import refused

import pren
from pren.cli import __main__ as command_line
from pren.runs.reopening import load_state

HOW = {"method": "eszsl", "rehearsals": 2}


@pytest.fixture
def result(data, tmp_path):
    """A run with answers, a forecast and a report."""
    return pren.fit(data(), tmp_path / "run", **HOW)


def test_it_says_what_to_expect_and_where_things_are(result, tmp_path):
    text = str(result)
    assert result.forecast.sentence() in text
    assert f"By the answers: top-1 {100 * result.figures.top1:.1f}".lower() in text.lower()
    for name in ("predictions.csv", "model.safetensors", "report.html"):
        assert str(tmp_path / "run" / name) in text
        assert (tmp_path / "run" / name).is_file()
    assert "ESZSL on data.npz" in repr(result)


def test_what_is_not_known_is_not_said(data):
    result = pren.fit(data(answers=None), method="eszsl", rehearsals=0)
    assert (result.forecast, result.figures, result.paths) == (None, None, None)
    assert "By the answers" not in str(result)
    assert "--rehearsals 10" in str(result)
    assert np.isnan(result.confidence).all()


def test_it_is_json(result, tmp_path):
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert content == result.to_dict()
    assert content["finished"]
    assert content["metrics"] == json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert content["labels"]["inputs"] == len(result.labels) == 18
    assert content["forecast"] == result.forecast.model_dump(mode="json")


def test_without_a_folder_nothing_is_kept_and_the_labels_are_the_same(result, data, tmp_path, fingerprint):
    before = fingerprint(tmp_path)
    other = pren.fit(tmp_path / "data.npz", **HOW)
    assert fingerprint(tmp_path) == before
    assert list(other.labels.rows()) == list(result.labels.rows())
    assert np.array_equal(other.confidence, result.confidence)
    assert (other.figures, other.forecast) == (result.figures, result.forecast)
    assert (other.paths, other.places()) == (None, [])
    assert json.loads(json.dumps(other.to_dict()))["run"] is None


def test_a_problem_in_memory(result, tmp_path):
    problem, answers = pren.load(tmp_path / "data.npz")
    for given in (problem, (problem, None), (problem, answers)):
        found = pren.fit(given, **HOW)
        assert list(found.labels.rows()) == list(result.labels.rows())
        assert (found.figures is None) == (given != (problem, answers))
    assert found.figures == result.figures
    with refused("data-not-named"):
        pren.fit(problem, tmp_path / "other", **HOW)
    assert not (tmp_path / "other").exists()


def test_the_predictor_labels_new_inputs(result, arrays):
    pool = arrays()["pool"]
    assert result.predictor.predict(pool).tolist() == result.labels.labels.tolist()
    new = np.concatenate([pool[3:5], pool[3:4] + 0.01])
    assert result.predictor.predict(new)[:2].tolist() == result.labels.labels[3:5].tolist()
    assert result.predictor.model is result.method


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "label-studio", "fiftyone"])
def test_its_tables_are_those_of_predict(form, result, arrays, tmp_path, monkeypatch):
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'pren[parquet]'")
    np.save(tmp_path / "pool.npy", arrays()["pool"])
    result.write_labels(tmp_path / "own", form)
    predict = ["predict", tmp_path / "run", tmp_path / "pool.npy", "--top=2", "--format", form, "--out"]
    for arguments in (
        [*predict, tmp_path / "new"],
        ["show", tmp_path / "run", "--format", form, "--labels", tmp_path / "shown"],
    ):
        monkeypatch.setattr(sys, "argv", ["pren", *map(str, arguments)])
        code = 0
        try:
            command_line.main()
        except SystemExit as ended:
            code = ended.code
        assert not code
    assert (tmp_path / "own").read_bytes() == (tmp_path / "new").read_bytes() == (tmp_path / "shown").read_bytes()
    if form == "csv":
        assert (tmp_path / "own").read_bytes() == (tmp_path / "run" / "predictions.csv").read_bytes()


@pytest.mark.parametrize("with_data", [False, True])
def test_the_folder_says_the_same(result, tmp_path, with_data):
    loaded = pren.load_result(tmp_path / "run", with_data=with_data)
    assert list(loaded.labels.rows()) == list(result.labels.rows())
    assert (loaded.config, loaded.figures, loaded.forecast) == (result.config, result.figures, result.forecast)
    assert (loaded.history, loaded.by_answers, loaded.summary) == (result.history, result.by_answers, result.summary)
    assert (str(loaded), loaded.to_dict()) == (str(result), result.to_dict())
    assert (loaded.outcome is not None) == with_data


def test_rounds_are_in_it(data, configure, tmp_path):
    config = configure(data())
    result = pren.fit(config.data, tmp_path / "run", method="pren", report=False, **config.params)
    assert [row["round"] for row in result.history] == [0, 1, 2, 3]
    assert pren.load_result(tmp_path / "run").history == result.history


def test_an_unfinished_run_has_a_state_and_no_result(data, configure, interrupted, tmp_path):
    interrupted(configure(data()), tmp_path / "run", 1)
    state = load_state(tmp_path / "run")
    assert not state.finished
    assert (state.to_dict()["rounds_done"], state.to_dict()["rounds"]) == (1, 3)
    with refused("run-unfinished"):
        pren.load_result(tmp_path / "run")
