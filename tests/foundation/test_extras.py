"""Every extra that a message or a page names exists, and the line that installs it is the one that works."""

import re
import sys
from pathlib import Path

import pytest

from pren.foundation.errors import PrenError
from pren.foundation.extras import how_to_install, need

REPOSITORY = Path(__file__).parents[2]
SECTION = "[project.optional-dependencies]\n"
# `'.[photos,words]'`, `need("optuna", "research")`, `how_to_install("words", "photos")`, "the extra `words`"
NAMED = (
    r"'\.\[([^]{]*)\]'",
    r"\bneed\(\s*\"[\w.]+\", \"([^\"]*)\"\)",
    r"\bhow_to_install\((['\"][^)]*)\)",
    r"\b[Ee]xtra\s+([`']+\w+[`']+)",
)
INDEX = re.compile(r"\bpip install(?: -\S+)* ['\"]?pren\b|\bpren\[")
FOLDERS = (("src", "*.py"), ("benchmarks", "*.py"), ("docs", "*.md"), ("docs", "*.ipynb"))
TEXTS = [
    *sorted(REPOSITORY.glob("*.md")),
    REPOSITORY / "Makefile",
    *(path for folder, pattern in FOLDERS for path in sorted((REPOSITORY / folder).rglob(pattern))),
]


def known() -> set[str]:
    table = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8").split(SECTION)[1].split("\n[")[0]
    return set(re.findall(r"^(\w+) = \[", table, flags=re.MULTILINE))


def named(text: str) -> set[str]:
    found = [part for pattern in NAMED for given in re.findall(pattern, text) for part in given.split(",")]
    return {part.strip(" `'\"") for part in found}


def test_every_extra_that_is_named_exists() -> None:
    unknown = {str(path): named(path.read_text(encoding="utf-8")) - known() for path in TEXTS}
    assert {path: names for path, names in unknown.items() if names} == {}


def test_every_extra_for_users_is_in_the_table_of_the_first_page() -> None:
    table = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8").split("## Install\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == known() - {"test", "browser", "docs", "dev"}


def test_no_text_says_that_an_index_has_the_package() -> None:
    assert [str(path) for path in TEXTS if INDEX.search(path.read_text(encoding="utf-8"))] == []


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(PrenError) as caught:
        need("optuna.logging", "research")
    line = "pip install -c constraints.txt '.[research]'"
    assert caught.value.code == "extra-missing"
    assert str(caught.value) == f"optuna is not installed: run {line} in the folder of pren's source."


def test_several_extras_are_one_line() -> None:
    assert "'.[photos,words]'" in how_to_install("photos", "words")


@pytest.mark.parametrize(
    "text",
    [
        "pip install '.[one,two]'",
        'need("a.b", "one")\nneed("c", "two")',
        "{how_to_install('one', 'two')}",
        'how_to_install("one", "two")',
        "the [extra `one`](x.md) and the extra\n``two``",
        "weights of the extra 'one', or of the extra 'two'",
    ],
)
def test_a_name_is_found(text: str) -> None:
    assert named(text) == {"one", "two"}


@pytest.mark.parametrize(
    "text", ["pip install pren", "pip install 'pren[one]'", "pip install -U pren", "needs pren[one]"]
)
def test_a_claim_that_an_index_has_it_is_found(text: str) -> None:
    assert INDEX.search(text)


def test_a_line_that_works_is_let_through() -> None:
    assert not INDEX.search("pip install -c constraints.txt dist/pren-0.2.0-py3-none-any.whl")
    assert not INDEX.search("pip install -c constraints.txt '.[one]'")
