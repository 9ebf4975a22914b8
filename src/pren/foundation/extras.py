"""Optional packages (the extras of `pyproject.toml`): imported where they are used, with a message if missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from pren.foundation.errors import PrenError


def how_to_install(*extras: str) -> str:
    """How to install extras, as the middle of a sentence. pren is on no package index, so its source is needed."""
    return f"run pip install -c constraints.txt '.[{','.join(extras)}]' in the folder of pren's source"


def need(module: str, extra: str) -> ModuleType:
    """Import a module of an optional package, or raise a `PrenError` that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise PrenError("extra-missing", f"{package} is not installed: {how_to_install(extra)}.") from error
