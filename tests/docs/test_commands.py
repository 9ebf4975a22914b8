"""Commands on the pages have only verbs, options, targets and modules that exist."""

import re
import shlex
from functools import cache
from importlib.util import find_spec

import pytest
from typer.main import get_command

from pren.cli.__main__ import app

from .conftest import PAGES, REPOSITORY, blocks

SHELL = [text for _, text in blocks("", "bash", "console", "text")]
# `pren ...`, `$ pren ...`, `.venv/bin/pren ...`, `torchrun ... -m pren.cli ...`, and what bash -c "pren ..." is given
START = r'^(?:srun bash -c "| *\S*/|\S*\$ |torchrun .*-m )?pren(?:\.cli)? '
COMMANDS = sorted(
    {line for text in SHELL for line in re.findall(rf'{START}([^#"\n]*(?:"[^"\n]*"[^#"\n]*)*)', text, re.MULTILINE)}
)
PROSE = "\n".join(
    re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for page in PAGES
    if page.name != "changelog.md"  # which names what is gone
)
INLINE = sorted({" ".join(text.split()) for text in re.findall(r"`pren ([a-z][^`]*)`", PROSE)})
# What Slurm fills in.
VARIABLES = {"$where": "--out", "$SLURM_NNODES": "2", r"\$SLURM_NODEID": "1", "$main": "node0"}


@cache
def root():
    return get_command(app)


def parse(command, title, arguments):
    """Read a command line as `pren` would, down to the verb of a verb, and do nothing."""
    context = command.make_context(title, arguments)
    if hasattr(command, "commands"):
        verb, *rest = arguments
        parse(command.commands[verb], verb, rest)
    return context


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_can_be_parsed(command):
    for variable, value in VARIABLES.items():
        command = command.replace(variable, value)
    parse(root(), "pren", shlex.split(command))


@pytest.mark.parametrize("command", INLINE)
def test_verbs_and_options_in_prose_exist(command):
    verb, *words = command.split()
    found = root().commands[verb]
    if hasattr(found, "commands") and words:
        found = found.commands[words[0]]
    known = {option for parameter in found.params for option in parameter.opts}
    assert {word.split("=")[0] for word in words if re.match(r"--\w", word)} <= known


def test_there_are_commands_to_check():
    assert len(COMMANDS) >= 80
    assert len(INLINE) >= 40
    with pytest.raises(Exception, match="No such option"):
        parse(root(), "pren", ["data", "check", "mydata", "--nonsense"])


@pytest.mark.parametrize(
    "target", sorted({t for text in SHELL for t in re.findall(r"^(?:\$ )?make (\w+)", text, re.MULTILINE)})
)
def test_make_knows_the_target(target):
    assert re.search(rf"^{target}:", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("module", sorted({m for text in SHELL for m in re.findall(r"\bpython -m (\S+)", text)}))
def test_modules_that_are_run_exist(module, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY)
    assert find_spec(module)
