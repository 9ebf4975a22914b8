"""Which room of the package may use which: imports go in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "pren"
ROOT = "__init__"  # `import pren` itself: only the outermost room may use the public names

ALLOWED: dict[str, set[str]] = {
    "foundation": set(),
    "core": {"foundation"},
    "problem": {"foundation"},
    "training": {"foundation", "core", "problem"},
    "images": {"foundation", "problem", "training"},
    "data": {"foundation", "problem", "images"},
    "evaluation": {"foundation", "core", "problem"},
    "methods": {"foundation", "core", "problem", "training", "images"},
    "trust": {"foundation", "core", "problem", "training", "data", "evaluation", "methods"},
    "store": {"foundation", "core", "problem", "images", "data", "evaluation", "methods", "trust"},
    "label": {"foundation", "problem", "training", "images", "data", "evaluation", "methods", "trust", "store"},
    "report": {"foundation", "problem", "images", "evaluation", "methods", "trust", "store", "label"},
    "runs": {
        *("foundation", "core", "problem", "training", "images", "data", "evaluation", "methods", "trust"),
        *("store", "label", "report"),
    },
    "review": {"foundation", "problem", "images", "data", "methods", "trust", "store", "label", "runs"},
    "research": {
        *("foundation", "core", "problem", "training", "images", "data", "evaluation", "methods"),
        *("store", "report", "runs"),
    },
    "cli": {
        *("foundation", "core", "problem", "training", "images", "data", "evaluation", "methods", "trust"),
        *("store", "label", "report", "runs", "review", "research"),
    },
}

FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(module: str) -> str:
    """`pren.core.voting` -> `core`, `pren` -> `__init__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ROOT


def imported_modules(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """The line and dotted name of everything of pren's that a file imports; `package` resolves relative imports."""
    for node in ast.walk(tree):
        names: list[str] = []
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom():
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                module = ".".join([*above, *([node.module] if node.module else [])])
                names = [f"{module}.{alias.name}" if module == "pren" else module for alias in node.names]
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                names = [name]
        for name in names:
            if name == "pren" or name.startswith("pren."):
                yield node.lineno, name  # type: ignore[attr-defined]


def forbidden_imports(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What the file of `module` imports although its room must not, as readable lines."""
    room = room_of(module)
    package = module if is_package else module.rpartition(".")[0]
    found = []
    for line, name in imported_modules(ast.parse(source), package):
        # `from pren import fit` names no room: it goes through the root.
        target = room_of(name) if room_of(name) in ALLOWED else ROOT
        if target != room and target not in ALLOWED[room]:
            found.append(f"{module}, line {line}: {room} must not import {name}")
    return found


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_room_is_on_the_map() -> None:
    rooms = {room_of(module_name(path)) for path in FILES}
    assert rooms <= set(ALLOWED), f"give {sorted(rooms - set(ALLOWED))} a place in ALLOWED"


def test_imports_go_in_one_direction() -> None:
    found = []
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        found += forbidden_imports(source, module_name(path), is_package=path.name == "__init__.py")
    assert not found, "\n".join(found)


def test_there_are_at_most_sixteen_rooms() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0] for path in FILES}
    assert len(rooms) <= 16
    assert all((PACKAGE / room).is_dir() for room in rooms)


def test_no_door_is_open_that_nothing_goes_through() -> None:
    used: dict[str, set[str]] = {room: set() for room in ALLOWED}
    for path in FILES:
        module = module_name(path)
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for _, name in imported_modules(ast.parse(path.read_text(encoding="utf-8")), package):
            used[room_of(module)].add(room_of(name) if room_of(name) in ALLOWED else ROOT)
    assert {room: doors - used[room] for room, doors in ALLOWED.items() if doors - used[room]} == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pren.core.voting", "import pren.cli"),
        ("pren.core.voting", "import numpy, pren.methods.pren as m"),
        ("pren.core.voting", "from pren.methods import PrEN"),
        ("pren.core.voting", "from pren import evaluation"),
        ("pren.core.voting", "from pren import PrEN"),
        ("pren.core.voting", "import pren"),
        ("pren.core.voting", "from ..data import numbers"),
        ("pren.core.voting", "from .. import runs"),
        ("pren.core.voting", "def late():\n    from pren.images import backbone"),
        ("pren.core.voting", "importlib.import_module('pren.cli')"),
        ("pren.foundation.errors", "from ..core import voting"),
        ("pren.store.folder", "from pren.cli import options"),
        ("pren.store.folder", "from pren.label import Predictor"),
        ("pren.report.page", "from pren.research.pages import report_experiments"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(forbidden_imports(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pren.core.voting", "from pren.core.ensemble import Ensemble\nfrom pren.foundation.errors import PrenError"),
        (
            "pren.core.voting",
            "from . import ensemble\nfrom ..foundation.errors import PrenError",
        ),
        ("pren.core.voting", "import torch\nfrom prendre import methods"),
        ("pren.problem.inputs", "from . import problem\nfrom pren.foundation import errors"),
        ("pren.cli.demo", "from pren.runs.fit import fit\nfrom pren.runs import Run"),
    ],
)
def test_an_allowed_import_is_let_through(module: str, source: str) -> None:
    assert not forbidden_imports(source, module)


def test_a_package_resolves_its_own_relative_imports() -> None:
    assert not forbidden_imports("from .voting import vote", "pren.core", is_package=True)
    assert forbidden_imports("from ..cli import demo", "pren.core", is_package=True)
