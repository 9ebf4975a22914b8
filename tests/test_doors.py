"""Which room of the package may use which: imports go in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "pren"
ROOT = "__init__"  # `import pren` itself: only the outermost room may use the public names

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "children": set(),
    "seeds": set(),
    "version": set(),
    "text": set(),
    "modules": set(),
    "extras": {"errors"},
    "registry": {"errors"},
    "files": {"errors"},
    "plain_yaml": {"errors"},
    "inputs": {"errors"},
    "problem": {"errors", "inputs"},
    "core": {"errors", "seeds"},
    "selection": {"core", "registry"},
    "scoring": {"core", "problem"},
    "engine": {"errors", "seeds", "inputs", "problem", "core"},
    "preparation": {"errors", "inputs", "modules", "problem", "registry"},
    "refinement": {"errors", "modules", "problem", "registry"},
    "vision": {"errors", "files", "seeds", "registry", "inputs", "problem", "engine"},
    "signatures": {"errors", "files", "registry", "inputs", "vision"},
    "data": {"children", "errors", "files", "seeds", "registry", "inputs", "problem", "vision", "signatures"},
    "evaluation": {"errors", "inputs", "problem", "scoring"},
}
ALLOWED["methods"] = set(ALLOWED) - {"data", "evaluation"}
ALLOWED["trust"] = set(ALLOWED)
ALLOWED["runs"] = set(ALLOWED)
ALLOWED["experiments"] = set(ALLOWED)
ALLOWED["report"] = set(ALLOWED)
ALLOWED["predictor"] = set(ALLOWED) - {"experiments", "report"}
ALLOWED["export"] = set(ALLOWED) - {"experiments", "report"}
ALLOWED["labelling"] = set(ALLOWED) - {"experiments", "report"}
ALLOWED["allocation"] = set()  # of a whole process: for those who start one
ALLOWED["experiments"].add("allocation")
ALLOWED["cli"] = set(ALLOWED) | {ROOT}

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


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_go_in_one_direction(path: Path) -> None:
    module = module_name(path)
    source = path.read_text(encoding="utf-8")
    assert not forbidden_imports(source, module, is_package=path.name == "__init__.py")


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
        ("pren.core.voting", "def late():\n    from pren.vision import backbone"),
        ("pren.core.voting", "importlib.import_module('pren.cli')"),
        ("pren.errors", "from .seeds import stream"),
        ("pren.runs.folder", "from pren.cli import options"),
        ("pren.evaluation.metrics", "from pren.core.voting import vote"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(forbidden_imports(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pren.core.voting", "from pren.core.ensemble import Ensemble\nfrom pren.errors import PrenError"),
        ("pren.core.voting", "from . import ensemble\nfrom .pseudo import select\nfrom ..errors import PrenError"),
        ("pren.core.voting", "import torch\nfrom prendre import methods"),
        ("pren.inputs", "from . import errors\nfrom pren import errors"),
        ("pren.cli.demo", "import pren\nfrom pren import fit\nfrom pren.runs import Run"),
    ],
)
def test_an_allowed_import_is_let_through(module: str, source: str) -> None:
    assert not forbidden_imports(source, module)


def test_a_package_resolves_its_own_relative_imports() -> None:
    assert not forbidden_imports("from .voting import vote", "pren.core", is_package=True)
    assert forbidden_imports("from ..cli import demo", "pren.core", is_package=True)
