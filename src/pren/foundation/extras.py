"""Optional packages: imported only where they are used, with a message that says how to install them.

`pyproject.toml` lists them as extras, each named after what a person wants: photos, words, clip, ...
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from pren.foundation.errors import PrenError


def how_to_install(*extras: str) -> str:
    """Say how to install extras, as the middle of a sentence; every message about a missing package uses this.

    The package is on no index, so the line only works where its source is.
    """
    return f"run pip install -c constraints.txt '.[{','.join(extras)}]' in the folder of pren's source"


def need(module: str, extra: str) -> ModuleType:
    """Import a module of an optional package; a `PrenError` says how to install the extra that brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise PrenError(
            "extra-missing", f"This needs {package}, which is not installed: {how_to_install(extra)}."
        ) from error
