"""Python on the pages runs where that needs no data; elsewhere it compiles, and what it takes from pren exists."""

import ast
from importlib import import_module

import pytest

import pren

from .conftest import blocks, name

PYTHON = blocks("python")
EXECUTED = ("README.md", "docs/concepts/numbers.md", "docs/guide/trust.md")  # docs/extending.md: test_extending.py


@pytest.mark.slow
@pytest.mark.parametrize("page", EXECUTED)
def test_blocks_run_and_print_what_they_should(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = [text for path, text in PYTHON if name(path) == page]
    exec(compile(example, page, "exec"), {})
    figures = [float(word) for word in capsys.readouterr().out.split()]
    assert figures
    assert all(0.1 < figure <= 1 for figure in figures), "chance is 0.05"
    if page == "README.md":
        assert (tmp_path / "my-model" / "model.safetensors").is_file()


@pytest.mark.parametrize(("page", "text"), PYTHON, ids=lambda value: "" if isinstance(value, str) else name(value))
def test_blocks_compile_and_take_from_pren_what_is_there(page, text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pren":
            module = import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), node.module
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pren":
            assert node.attr in pren.__all__


def test_there_are_blocks_to_check():
    assert len(PYTHON) >= 13
