"""What README shows must run as written."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from pren.cli.__main__ import app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```\n", README, flags=re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^pren [^#\n]*", "\n".join(text for _, text in BLOCKS), flags=re.MULTILINE)


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
    assert len(COMMANDS) >= 6
