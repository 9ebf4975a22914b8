"""What README and the pages under docs show must run as written."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from pren.cli.__main__ import app
from pren.methods.registry import METHODS

REPOSITORY = Path(__file__).parents[1]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def blocks_of(page):
    return re.findall(r"^```(\w*)\n(.*?)^```\n", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


BLOCKS = blocks_of(PAGES[0])
COMMANDS = sorted(
    {
        command.strip()
        for page in PAGES
        for _, text in blocks_of(page)
        for command in re.findall(r"^(?:\S*\$ )?(pren [^#\n]*)", text, flags=re.MULTILINE)
    }
)
LINKS = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))]


@pytest.mark.slow
def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    example = next(text for language, text in BLOCKS if language == "python")
    exec(compile(example, "README.md", "exec"), {})
    assert float(capsys.readouterr().out) > 0.1, "chance is 0.05"
    assert (tmp_path / "my-model" / "model.safetensors").is_file()


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_have_only_options_that_exist(command):
    verb, *arguments = shlex.split(command)[1:]
    get_command(app).commands[verb].make_context(verb, arguments)


def test_there_are_commands_to_check():
    assert len(COMMANDS) >= 14


@pytest.mark.parametrize(("page", "link"), LINKS, ids=lambda value: getattr(value, "name", value))
def test_links_lead_somewhere(page, link):
    assert (page.parent / link).exists()


def test_every_method_is_described_and_marked_as_in_the_tables():
    page = (REPOSITORY / "docs" / "concepts" / "methods.md").read_text(encoding="utf-8")
    described = dict(re.findall(r"^\| `([\w-]+)`( †)? \|", page, flags=re.MULTILINE))
    assert described == {name: " †" if "†" in entry.title else "" for name, entry in METHODS.items()}
