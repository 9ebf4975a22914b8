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
