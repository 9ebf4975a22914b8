"""The notebooks run from top to bottom, and what they say of their outputs is so."""

import logging
import re
import runpy
import shlex
import sys
from contextlib import redirect_stdout
from io import StringIO

import pytest

from pren.cli import __main__ as command_line
from pren.images import quality

from .conftest import REPOSITORY

nbformat = pytest.importorskip("nbformat", reason="the extra test is not installed")
NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))


def check(path, notebook):
    """Figures may differ from machine to machine, but not what the text makes of them."""
    printed = "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.get("name") == "stdout"
    )
    if path.stem == "own-photographs":
        assert "Classes without a label: 00." in printed
        assert "02 or 00?" in printed
        first, second = re.findall(r": (\d+)% of the labels are right", printed)
        assert int(first) < 80 < int(second)
    else:
        top1 = {title: float(figure) for title, figure in re.findall(r"^(\w.*?) {2,}([\d.]+)%$", printed, re.MULTILINE)}
        assert len(top1) == 6
        assert top1["drift, no step"] == top1["ridge, whitened"] < top1["drift"]
        assert "True\n" in printed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_readers_see_what_it_puts_out(path):
    check(path, nbformat.read(path, as_version=4))


@pytest.mark.slow
def test_one_runs_in_a_kernel(tmp_path, monkeypatch):
    """And defines a method, which is nothing for this process."""
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "PREN_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    path = REPOSITORY / "docs" / "notebooks" / "own-method.ipynb"
    check(path, runpy.run_path(str(REPOSITORY / "docs" / "execute.py"))["execute"](path))


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem != "own-method"], ids=lambda path: path.stem)
def test_it_runs(path, tmp_path, monkeypatch):
    """In this process, also its commands, each of which would import torch anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FORCE_COLOR", "")  # as a cell sets it
    monkeypatch.setattr(quality, "PACKAGES", ["tf_efficientnet_lite0"])  # one backbone, to be quick
    notebook, left = nbformat.read(path, as_version=4), {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            with redirect_stdout(StringIO()) as printed:
                magic, _, commands = cell.source.partition("\n")
                if magic == "%%sh":
                    run(commands, monkeypatch)
                else:
                    exec(compile(cell.source, path.name, "exec"), left)
            cell.outputs = [nbformat.v4.new_output("stream", text=printed.getvalue())]
    check(path, notebook)


def run(commands, monkeypatch):
    for command in commands.splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        assert sys.argv[0] == "pren"
        code = 0
        try:
            command_line.main()
        except SystemExit as ended:
            code = ended.code
        logging.getLogger("pren").handlers.clear()
        assert not code, command
