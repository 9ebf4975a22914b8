"""Import timm even if the compiled operators of torchvision do not fit torch.

timm imports torchvision, which registers two operators (`nms` and `qnms`) with torch. They are in a compiled library
that is built for one build of torch, mostly a CUDA one. With another build (such as the CPU build) it cannot be loaded,
and the import fails with ``operator torchvision::nms does not exist``, although models and transforms need neither. It
is enough to declare them without a body. Always import timm with `import_timm`.
"""

from __future__ import annotations

import importlib
import logging
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import torch

from pren.foundation.errors import PrenError

log = logging.getLogger(__name__)

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
MISSING = ("nms", "qnms")


@cache
def import_timm() -> ModuleType:
    """Return the module `timm`; `PrenError` if it or torchvision cannot be imported."""
    mend_torchvision()
    try:
        return importlib.import_module("timm")
    except Exception as error:  # a mismatched build can fail in any way
        message = (
            f"Cannot import timm and torchvision ({error}): install pren again, and a torchvision that fits torch."
        )
        raise PrenError("torchvision", message) from error


def mend_torchvision() -> None:
    """Make torchvision importable; call this before importing a package that imports it."""
    if "torchvision" not in sys.modules and not _operators_load():
        _declare_operators()


def _operators_load() -> bool:
    """Whether torchvision's compiled operators work with this torch; they can be loaded twice."""
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        return False
    try:
        for library in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(library)  # type: ignore[no-untyped-call]
            return True
    except (ImportError, OSError) as error:
        log.debug("torchvision's operators cannot be loaded and are declared instead: %s", error)
    return False


@cache  # keeps the library alive, and with it what it declares
def _declare_operators() -> torch.library.Library:
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in MISSING:
        if not hasattr(torch.ops.torchvision, name):  # another package may have declared them
            library.define(f"{name}{SCHEMA}")  # type: ignore[no-untyped-call]
    return library
