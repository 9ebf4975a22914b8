"""What is written down twice agrees: versions, supported Pythons, and the linters of make and of pre-commit."""

import re
from pathlib import Path

import yaml

from pren.foundation.version import __version__

REPOSITORY = Path(__file__).parents[1]


def text(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def linters(commands: list[str]) -> set[str]:
    """The commands without their options: `ruff check`, `mypy`, ..."""
    words = ([word for word in command.split("/")[-1].split() if word.isalpha()][:2] for command in commands)
    return {" ".join(found if found[0] == "ruff" else found[:1]) for found in words}


def test_pre_commit_runs_the_linters_of_make() -> None:
    recipe = re.findall(r"^lint:.*\n((?:\t.*\n)+)", text("Makefile"), flags=re.MULTILINE)[0].splitlines()
    hooks = [hook for repo in yaml.safe_load(text(".pre-commit-config.yaml"))["repos"] for hook in repo["hooks"]]
    assert all(hook["entry"].startswith(".venv/bin/") and hook["language"] == "system" for hook in hooks)
    entries = [hook["entry"] for hook in hooks]
    assert linters(entries) == linters(recipe)
    assert {"ruff check", "ruff format", "mypy", "bandit"} <= linters(entries)


def test_the_workflow_runs_everything_on_every_python() -> None:
    job = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]["run"]
    claimed = re.findall(r"Python :: (3\.\d+)\"", text("pyproject.toml"))
    assert job["strategy"]["matrix"]["python"] == claimed
    assert {"run": ".ci/run"} in job["steps"]
    oldest = re.findall(r"requires-python = \">=(.*)\"", text("pyproject.toml"))
    assert oldest == claimed[:1]


def test_the_citation_has_the_version() -> None:
    assert re.findall(r"^version: (.*)$", text("CITATION.cff"), flags=re.MULTILINE) == [__version__]


def test_the_house_is_as_contributing_describes_it() -> None:
    house = text("CONTRIBUTING.md").split("## The house\n")[1].split("\n## ")[0]
    rooms = re.findall(r"^\| `(\w+)/` \|", house, flags=re.MULTILINE)
    package = REPOSITORY / "src" / "pren"
    assert sorted(rooms) == sorted(path.name for path in package.iterdir() if (path / "__init__.py").exists())
    inside = set(re.findall(r"`((?:" + "|".join(rooms) + r")/[\w/]*(?:\.py)?)`", house))
    elsewhere = set(re.findall(r"`((?:tests|docs)/[\w/]*\.\w+)`", house))
    assert len(inside) > 30
    missing = {name for name in inside if not (package / name).exists()}
    assert missing | {name for name in elsewhere if not (REPOSITORY / name).exists()} == set()
