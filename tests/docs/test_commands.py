"""Commands on the pages have only verbs, options, targets and modules that exist."""

import re
import shlex
from functools import cache
from importlib.util import find_spec

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


def unparsed(command):
    """What is wrong with a command line, if anything."""
    for variable, value in VARIABLES.items():
        command = command.replace(variable, value)
    try:
        parse(root(), "pren", shlex.split(command))
    except Exception as error:  # typer keeps a click of its own, where no name is public
        return f"pren {command}: {error!r}"
    return None


def unknown_options(command):
    """The verb or the options of a command in prose that do not exist."""
    verb, *words = command.split()
    found = root().commands.get(verb)
    if hasattr(found, "commands"):
        found = found.commands.get(words[0]) if words else found
    if found is None:
        return {f"pren {command}: no such verb"}
    known = {option for parameter in found.params for option in parameter.opts}
    asked = {word.split("=")[0] for word in words if re.match(r"--\w", word)}
    return {f"pren {command}: {option}" for option in asked - known}


def test_commands_can_be_parsed():
    assert list(filter(None, map(unparsed, COMMANDS))) == []


def test_verbs_and_options_in_prose_exist():
    assert set().union(*map(unknown_options, INLINE)) == set()


def test_there_are_commands_to_check():
    assert len(COMMANDS) >= 80
    assert len(INLINE) >= 40


def test_what_does_not_exist_is_found():
    assert all(map(unparsed, ["data check mydata --nonsense", "nonsense", "fit 'open"]))
    assert all(map(unknown_options, ["fit --nonsense", "nonsense", "data nonsense"]))


def test_make_knows_the_targets():
    named = {target for text in SHELL for target in re.findall(r"^(?:\$ )?make (\w+)", text, re.MULTILINE)}
    known = set(re.findall(r"^(\w+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert named
    assert named - known == set()


def test_modules_that_are_run_exist(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY)
    named = {module for text in SHELL for module in re.findall(r"\bpython -m (\S+)", text)}
    assert named
    assert [module for module in sorted(named) if find_spec(module) is None] == []
