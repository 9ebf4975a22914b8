"""Zero-shot image recognition: the Progressive Ensemble Network and its rivals.

The public names are loaded when they are first used, so that ``pren --help`` need not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pren.foundation.version import __version__

if TYPE_CHECKING:
    from pren.data import list_datasets, load, register_dataset
    from pren.data.describe import register_encoder
    from pren.evaluation import evaluate
    from pren.foundation.errors import PrenError
    from pren.images.backbones import list_backbones
    from pren.images.photographs import freeze
    from pren.images.registered import register_backbone
    from pren.label.predictions import Predictions
    from pren.label.predictor import Predictor
    from pren.label.result import RunResult
    from pren.methods.base import Method
    from pren.methods.pren import PrEN
    from pren.methods.pren_pool import PrENPool
    from pren.methods.registry import create, list_methods, register_method
    from pren.methods.rivals.eszsl import ESZSL
    from pren.problem import Answers, ClassTable, Problem
    from pren.runs.fit import fit
    from pren.runs.reopening import load_result
    from pren.runs.run import Progress
    from pren.store.models import load_model
    from pren.trust import Trust, assess

_HOMES = {
    "Answers": "pren.problem",
    "ClassTable": "pren.problem",
    "ESZSL": "pren.methods.rivals.eszsl",
    "Method": "pren.methods.base",
    "PrEN": "pren.methods.pren",
    "PrENPool": "pren.methods.pren_pool",
    "PrenError": "pren.foundation.errors",
    "Predictions": "pren.label.predictions",
    "Predictor": "pren.label.predictor",
    "Problem": "pren.problem",
    "Progress": "pren.runs.run",
    "RunResult": "pren.label.result",
    "Trust": "pren.trust",
    "assess": "pren.trust",
    "create": "pren.methods.registry",
    "evaluate": "pren.evaluation",
    "fit": "pren.runs.fit",
    "freeze": "pren.images.photographs",
    "list_backbones": "pren.images.backbones",
    "list_datasets": "pren.data",
    "list_methods": "pren.methods.registry",
    "load": "pren.data",
    "load_model": "pren.store.models",
    "load_result": "pren.runs.reopening",
    "register_backbone": "pren.images.registered",
    "register_dataset": "pren.data",
    "register_encoder": "pren.data.describe",
    "register_method": "pren.methods.registry",
}

__all__ = [
    "ESZSL",
    "Answers",
    "ClassTable",
    "Method",
    "PrEN",
    "PrENPool",
    "Predictions",
    "Predictor",
    "PrenError",
    "Problem",
    "Progress",
    "RunResult",
    "Trust",
    "__version__",
    "assess",
    "create",
    "evaluate",
    "fit",
    "freeze",
    "list_backbones",
    "list_datasets",
    "list_methods",
    "load",
    "load_model",
    "load_result",
    "register_backbone",
    "register_dataset",
    "register_encoder",
    "register_method",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pren' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
