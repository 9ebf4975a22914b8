"""The results under docs/results: every figure in them is that of a stored cell."""

import csv
import json
import re
from pathlib import Path

import pytest

from benchmarks import pages
from pren.methods.registry import METHODS
from pren.research.cells import Cell, Result
from pren.research.summary import summarise
from pren.research.tables import csv_table, percent_spread

RESULTS = Path(__file__).parents[1] / "docs" / "results"
STORES = sorted(path.parent for path in RESULTS.glob("*/table.csv"))


@pytest.fixture(params=STORES, ids=lambda path: path.name)
def store(request):
    """A folder of results, and its cells by the title of the method."""
    by_method = {}
    for path in sorted((request.param / "cells").glob("*.json")):
        content = json.loads(path.read_text())
        cell, result = Cell.model_validate(content["cell"]), Result.model_validate(content["result"])
        assert path.stem == f"{cell.method}-{cell.key()}", "a cell that was changed by hand"
        by_method.setdefault(METHODS[cell.method].title, []).append((cell, result))
    return request.param, by_method


def test_there_are_results():
    assert [path.name for path in STORES] == [
        "cub-ps-gzsl",
        "cub-ps-gzsl-prepared",
        "cub-ps-zsl",
        "cub-ps-zsl-foundation",
        "cub-ps-zsl-prepared",
        "cub-ss-zsl",
        "cub-ss-zsl-prepared",
    ]


def test_tables_are_what_the_cells_say(store):
    folder, by_method = store
    with (folder / "table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows if row["runs"] != "0"} == set(by_method)
    for row in rows:
        if row["runs"] == "0":
            continue
        cells = sorted(by_method[row["method"]], key=lambda pair: pair[0].seed or 0)
        again = summarise(row["data"], row["method"], False, [result for _, result in cells])
        header, table = csv_table([again], cells[0][0].setting)
        for name, value in zip(header, table[0], strict=True):
            if isinstance(value, float):
                assert float(row[name]) == pytest.approx(value, rel=1e-9)
            else:
                assert row[name] == str("" if value is None else value)


def test_cells_of_a_method_differ_in_the_seed_alone(store):
    _, by_method = store
    for cells in by_method.values():
        without = [cell.model_copy(update={"seed": 0, "params": {**cell.params, "seed": 0}}) for cell, _ in cells]
        assert len({cell.key() for cell in without}) == 1
        assert len({cell.seed for cell, _ in cells}) == len(cells)


def test_the_page_says_what_the_tables_say(store):
    folder, by_method = store
    page = (RESULTS / ("recipe.md" if "prepared" in folder.name else "comparison.md")).read_text(encoding="utf-8")
    part = page.split(f"({folder.name}/table.md)")[1]
    lines = re.search(r"(?:^\|.*\n)+", part, flags=re.MULTILINE).group().splitlines()
    header = [text.strip() for text in lines[0].strip("|").split("|")]
    shown = {}
    for line in lines[2:]:
        cells = [text.strip().strip("*") for text in line.strip("|").split("|")]
        shown[cells[0]] = dict(zip(header, cells, strict=True))
    assert set(by_method) <= set(shown)
    assert [title for title in (entry.title for entry in METHODS.values()) if title in shown] == list(shown)
    titles = {"Top-1": "top1", "mAcc": "macc", "u": "u", "s": "s", "H": "h", "AUSUC": "ausuc"}
    for method, row in shown.items():
        again = summarise("", method, False, [result for _, result in by_method.get(method, [])])
        assert row["runs"] == str(again.runs)
        for title in titles.keys() & set(header):
            assert row[title] == percent_spread(again.figures[titles[title]])


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda path: path.stem)
def test_pages_show_the_tables_that_are_stored(page):
    """If not: python -m benchmarks.pages."""
    text = page.read_text(encoding="utf-8")
    assert pages.BLOCK.findall(text)
    assert pages.filled(text) == text


def test_a_table_is_put_between_its_marks():
    marked = "before\n<!-- begin: reproduction/datasets.md -->\nold\n<!-- end -->\nafter\n"
    text = pages.filled(marked)
    assert text.startswith("before\n<!-- begin: reproduction/datasets.md -->\n\n| data |")
    assert text.endswith("|\n\n<!-- end -->\nafter\n")
    assert "| CUB | 11788 | 11788 |" in text
    assert "old" not in text


def test_cells_of_the_reproduction_are_as_they_were_computed():
    for path in sorted((RESULTS / "reproduction" / "cells").glob("*.json")):
        cell = Cell.model_validate(json.loads(path.read_text())["cell"])
        assert path.stem == f"{cell.method}-{cell.key()}"
