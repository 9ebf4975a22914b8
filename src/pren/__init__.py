"""Zero-shot image recognition: the Progressive Ensemble Network and its rivals.

The public names are loaded when they are first used, so that ``pren --help`` need not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pren.foundation.version import __version__ as __version__

if TYPE_CHECKING:
    from pren.data import list_datasets as list_datasets
    from pren.data import load as load
    from pren.data import register_dataset as register_dataset
    from pren.data.describe import register_encoder as register_encoder
    from pren.evaluation import evaluate as evaluate
    from pren.foundation.errors import PrenError as PrenError
    from pren.images.backbones import list_backbones as list_backbones
    from pren.images.photographs import freeze as freeze
    from pren.images.registered import register_backbone as register_backbone
    from pren.label.predictions import Predictions as Predictions
    from pren.label.predictor import Predictor as Predictor
    from pren.label.result import RunResult as RunResult
    from pren.methods.base import Method as Method
    from pren.methods.pren import PrEN as PrEN
    from pren.methods.pren_pool import PrENPool as PrENPool
    from pren.methods.pren_vote import PrENVote as PrENVote
    from pren.methods.registry import create as create
    from pren.methods.registry import list_methods as list_methods
    from pren.methods.registry import register_method as register_method
    from pren.methods.rivals.eszsl import ESZSL as ESZSL
    from pren.problem import Answers as Answers
    from pren.problem import ClassTable as ClassTable
    from pren.problem import Problem as Problem
    from pren.runs.fit import fit as fit
    from pren.runs.reopening import load_result as load_result
    from pren.runs.run import Progress as Progress
    from pren.store.models import load_model as load_model
    from pren.trust import Trust as Trust
    from pren.trust import assess as assess

_NAMES = {
    "pren.data": "list_datasets load register_dataset",
    "pren.data.describe": "register_encoder",
    "pren.evaluation": "evaluate",
    "pren.foundation.errors": "PrenError",
    "pren.images.backbones": "list_backbones",
    "pren.images.photographs": "freeze",
    "pren.images.registered": "register_backbone",
    "pren.label.predictions": "Predictions",
    "pren.label.predictor": "Predictor",
    "pren.label.result": "RunResult",
    "pren.methods.base": "Method",
    "pren.methods.pren": "PrEN",
    "pren.methods.pren_pool": "PrENPool",
    "pren.methods.pren_vote": "PrENVote",
    "pren.methods.registry": "create list_methods register_method",
    "pren.methods.rivals.eszsl": "ESZSL",
    "pren.problem": "Answers ClassTable Problem",
    "pren.runs.fit": "fit",
    "pren.runs.reopening": "load_result",
    "pren.runs.run": "Progress",
    "pren.store.models": "load_model",
    "pren.trust": "Trust assess",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pren' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
