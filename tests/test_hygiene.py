"""What no file of this repository may contain."""

from __future__ import annotations

import ast
import io
import re
import shutil
import subprocess
import tokenize
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "src" / "pren"
SOURCES = sorted(PACKAGE.rglob("*.py"))

PICKLERS = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
MOST_LINES = 320

# Written so that this file does not contain what it looks for.
MACHINE_PATH = re.compile(r"(?<![\w.~*-])/(?:work|root)/")
INDEX_HOST = re.compile(r"pypi\.[o]rg|pythonhosted\.[o]rg|download\.pytorch\.[o]rg|index-[u]rl|find-[l]inks")


def name(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def unsafe_loading(source: str) -> list[str]:
    """Imports of whatever pickles, and calls that would unpickle."""
    found = []
    for node in ast.walk(ast.parse(source)):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = [node.module or ""]
        elif isinstance(node, ast.Call):
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            safe = keywords.get("allow_pickle", "False") == "False" and keywords.get("weights_only", "True") == "True"
            if not safe or (ast.unparse(node.func) == "torch.load" and "weights_only" not in keywords):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
        found += [f"line {node.lineno}: import {m}" for m in modules if m.split(".")[0] in PICKLERS]  # type: ignore[attr-defined]
    return found


def prints(source: str) -> list[int]:
    """The lines that call print."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


def lines_of_code(source: str) -> int:
    """Lines that are not blank, not only a comment and not part of a docstring."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in nothing
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(code - docstrings)


def findings(paths: list[Path], look: Callable[[str], list[str]]) -> str:
    """What is found in any of the files, one line each."""
    assert len(paths) > 100
    return "\n".join(f"{name(path)}, {found}" for path in paths for found in look(path.read_text(encoding="utf-8")))


def test_no_source_pickles() -> None:
    assert findings(SOURCES, unsafe_loading) == ""


def test_the_library_never_prints() -> None:
    library = [path for path in SOURCES if PACKAGE / "cli" not in path.parents]
    assert findings(library, lambda source: [f"line {line}: print" for line in prints(source)]) == ""


def test_no_source_is_too_long_to_read() -> None:
    def look(source: str) -> list[str]:
        return [f"{lines} lines"] if (lines := lines_of_code(source)) > MOST_LINES else []

    assert findings(SOURCES, look) == ""


def test_no_file_names_a_machine_or_an_index() -> None:
    git = shutil.which("git")
    if git is None or not (REPOSITORY / ".git").exists():
        pytest.skip("not a git checkout")
    # Files that could be committed count too, so that the test speaks before the commit.
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    files = [REPOSITORY / line for line in listing.split("\0") if line]
    assert REPOSITORY / "pyproject.toml" in files
    found = [
        f"{name(path)}, line {number}: {line.strip()}"
        for path in files
        if path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if MACHINE_PATH.search(line) or INDEX_HOST.search(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import dump",
        "def f():\n    import joblib.externals",
        "np.load(file, allow_pickle=True)",
        "torch.load(file)",
        "torch.load(file, weights_only=False)",
    ],
)
def test_unsafe_loading_is_found(source: str) -> None:
    assert len(unsafe_loading(source)) == 1


def test_safe_loading_is_let_through() -> None:
    assert not unsafe_loading(
        "from .pickle import x\nnp.load(file, allow_pickle=False)\ntorch.load(file, weights_only=True)"
    )


def test_a_print_is_found() -> None:
    assert prints("x = 1\nprint(x)\nconsole.print(x)\n") == [2]


def test_only_code_counts_as_code() -> None:
    assert lines_of_code('"""Doc\nstring."""\n\n# comment\nx = (\n    1,  # one\n)\ny = """a\nb"""\n') == 5


@pytest.mark.parametrize("root", ["work", "root"])
def test_a_machine_path_is_found(root: str) -> None:
    assert MACHINE_PATH.search(f'open("/{root}/file")')
    assert not MACHINE_PATH.search(f"src/{root}/file and ./{root}/file")


@pytest.mark.parametrize("host", ["pypi.{}", "files.pythonhosted.{}", "https://download.pytorch.{}/whl/cpu"])
def test_an_index_host_is_found(host: str) -> None:
    assert INDEX_HOST.search(host.format("org"))
