"""The same rows in every format."""

import csv
import json
import sys
from pathlib import Path

import pytest
from refusals import refused

from pren.foundation.files import from_cell
from pren.label.formats import WRITERS, find_writer
from pren.label.predictions import Row, read_csv

HOSTILE = '=cmd|" /C calc"!A0\n\x1b[31m, é'
ROWS = [
    Row("a/b.c.jpg", ((HOSTILE, 1 / 3), ("-b", -2e-300)), 0.25),
    Row(HOSTILE, error="cannot be read"),
    Row("unsure.jpg", (), 0.1, 0.5),
]
HEADER = ["input", "class", "score", "confidence", "familiarity", "class_2", "score_2", "error"]
WIDE = [
    ["a/b.c.jpg", HOSTILE, 1 / 3, 0.25, None, "-b", -2e-300, None],
    [HOSTILE, None, None, None, None, None, None, "cannot be read"],
    ["unsure.jpg", None, None, 0.1, 0.5, None, None, None],
]
OBJECTS = [
    {
        "input": "a/b.c.jpg",
        "classes": [{"class": HOSTILE, "score": 1 / 3}, {"class": "-b", "score": -2e-300}],
        "confidence": 0.25,
        "familiarity": None,
        "error": None,
    },
    {"input": HOSTILE, "classes": [], "confidence": None, "familiarity": None, "error": "cannot be read"},
    {"input": "unsure.jpg", "classes": [], "confidence": 0.1, "familiarity": 0.5, "error": None},
]


@pytest.fixture
def written(tmp_path):
    """Write rows in two batches."""

    def write(form, rows=ROWS):
        WRITERS[form](tmp_path / "out", 2, iter([rows[:1], rows[1:]]))
        return tmp_path / "out"

    return write


def test_csv(written):
    with written("csv").open(newline="", encoding="utf-8") as file:
        rows = [[from_cell(cell) for cell in row] for row in csv.reader(file)]
    assert rows == [HEADER, *([("" if cell is None else str(cell)) for cell in row] for row in WIDE)]


def test_csv_is_read_again(written):
    assert list(read_csv(written("csv"))) == ROWS


@pytest.mark.parametrize("content", [b"", b"image,class\n1,a\n", b"input,class,score\n1,a,x\n", b"\xff\xfe"])
def test_what_is_no_such_table_is_damaged(tmp_path, content):
    (tmp_path / "labels.csv").write_bytes(content)
    with refused("damaged"):
        list(read_csv(tmp_path / "labels.csv"))


def test_jsonl(written):
    assert [json.loads(line) for line in written("jsonl").read_text(encoding="utf-8").split("\n")[:-1]] == OBJECTS
    assert [Row.from_json(content) for content in OBJECTS] == ROWS


def test_parquet(written):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    table = parquet.read_table(written("parquet"))
    assert table.column_names == HEADER
    assert [list(row.values()) for row in table.to_pylist()] == WIDE
    empty = parquet.read_table(written("parquet", []))
    assert (empty.column_names, len(empty), empty.schema) == (HEADER, 0, table.schema)


def test_parquet_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    with refused("extra-missing"):
        find_writer(Path("a.parquet"))


def test_label_studio(written):
    tasks = json.loads(written("label-studio").read_text())
    assert [task["data"]["image"] for task in tasks] == [row.input for row in ROWS]
    (guess,) = tasks[0]["predictions"]
    assert guess["score"] == 0.25
    (result,) = guess["result"]
    assert result == {
        "from_name": "choice",
        "to_name": "image",
        "type": "choices",
        "value": {"choices": [HOSTILE]},
    }
    assert tasks[1]["predictions"] == tasks[2]["predictions"] == []


def test_fiftyone(written):
    content = json.loads(written("fiftyone").read_text())
    assert content == {"classes": None, "labels": {"a/b.c": {"label": HOSTILE, "confidence": 0.25}}}


def test_fiftyone_finds_a_file_by_its_whole_path_only_if_that_is_whole(written):
    rows = [ROWS[0]._replace(input=name) for name in ("/photographs/a.jpg", "/photographs/a.png", "b.jpg")]
    content = json.loads(written("fiftyone", rows).read_text())
    assert list(content["labels"]) == ["/photographs/a.jpg", "/photographs/a.png", "b"]


def test_nothing_is_json_too(written):
    assert json.loads(written("label-studio", []).read_text()) == []
    assert json.loads(written("fiftyone", []).read_text()) == {"classes": None, "labels": {}}


def test_the_ending_says_which():
    assert [find_writer(Path(name)) for name in ("a.csv", "a.JSONL")] == ["csv", "jsonl"]
    assert find_writer(Path("tasks.json"), "label-studio") == "label-studio"
    for out, name in (("a.json", None), ("a", None), ("a.csv", "excel")):
        with refused("unknown-format"):
            find_writer(Path(out), name)
