"""Packages that few need: imported when they are, with a message that says how to get them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from pren.foundation.errors import PrenError


def need(module: str, extra: str) -> ModuleType:
    """Import a module of an optional package; a `PrenError` says which extra of pren brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise PrenError(
            "extra-missing", f"This needs {package}, which is not installed: pip install 'pren[{extra}]'."
        ) from error
