"""Python on the pages runs where that needs no data; elsewhere it compiles, and what it takes from pren exists."""

import ast
import json
import shutil
from importlib import import_module
from pathlib import Path

import pytest

import pren
from pren.images import quality

from .conftest import blocks, name

PYTHON = blocks("python")
FIGURES = ("docs/concepts/numbers.md", "docs/guide/trust.md")  # what they print; docs/extending.md: test_extending.py
PHOTOGRAPHS = ("README.md", "docs/guide/python.md")  # which have a folder mydata, and photo.jpg


def execute(page):
    """Run the blocks of a page one after the other; returns the names that they leave."""
    left = {}
    for text in [text for path, text in PYTHON if name(path) == page]:
        exec(compile(text, page, "exec"), left)
    return left


@pytest.mark.slow
@pytest.mark.parametrize("page", FIGURES)
def test_blocks_run_and_print_what_they_should(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    execute(page)
    figures = [float(word) for word in capsys.readouterr().out.split()]
    assert figures
    assert all(0.1 < figure <= 1 for figure in figures), "chance is 0.05"


@pytest.mark.slow
@pytest.mark.parametrize("page", PHOTOGRAPHS)
def test_blocks_run_with_a_folder_of_photographs(page, photographs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(quality, "PACKAGES", ["tf_efficientnet_lite0"])  # one backbone, to be quick
    shutil.copy(photographs / "unlabelled" / "0.png", "photo.jpg")
    photographs.rename("mydata")
    left = execute(page)
    assert (tmp_path / "runs" / "mine" / "report.html").is_file()
    written = [json.loads(line) for line in Path("labels.jsonl").read_text().splitlines()]
    assert len(written) == 6
    assert {row["classes"][0]["class"] for row in written} <= {"a", "b"}
    if page != "README.md":
        assert set(left["found"].labels) <= {"a", "b"}
        assert len(left["found"]) == 7


def missing(text):
    """What a block takes from pren that is not there."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pren":
            module = import_module(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names if not hasattr(module, alias.name)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pren":
            found += [f"pren.{node.attr}"] if node.attr not in pren.__all__ else []
    return found


def test_blocks_compile_and_take_from_pren_what_is_there():
    assert len(PYTHON) >= 13
    assert [f"{name(page)}: {thing}" for page, text in PYTHON for thing in missing(text)] == []
    assert missing("import pren\nfrom pren.core import nonsense\npren.Nonsense()") == [
        "pren.core.nonsense",
        "pren.Nonsense",
    ]
