"""A model from its inputs to its outputs as one torch module, and what whoever runs it has to know."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.foundation.version import __version__
from pren.images.photographs import recorded_backbone, whole_backbone
from pren.images.preprocessing import Preprocessing
from pren.methods.base import Method
from pren.problem import candidates_of
from pren.trust import Trust
from pren.trust.confidence import threshold
from pren.trust.module import TrustModule


@dataclass(frozen=True, eq=False)
class Program:
    """What is exported.

    Attributes:
        module: Inputs (N, *shape) -> scores (N, L) float64 and, where it is known, confidence (N,) float64.
        input_name: "images" or "features".
        example: (2, *shape) of the type that it takes.
        outputs: The names of what it returns.
        facts: What stands in the file beside it, JSON-ready.
    """

    module: nn.Module
    input_name: str
    example: Tensor
    outputs: tuple[str, ...]
    facts: dict[str, Any]


class Whole(nn.Module):
    """Levels from 0 to 255, the frozen backbone's features, scores, confidence: each where there is one."""

    def __init__(self, levels: bool, backbone: nn.Module | None, scores: nn.Module, trust: nn.Module | None) -> None:
        super().__init__()
        self.levels = levels
        self.backbone = backbone
        self.scores = scores
        self.trust = trust

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """(N, *shape) -> (N, L) and maybe (N,)."""
        x = inputs.float() / 255 if self.levels else inputs
        if self.backbone is not None:
            x = self.backbone(x).half().float()  # as the cache has them, so as the model has learned from them
        scores = self.scores(x)
        return (scores,) if self.trust is None else (scores, self.trust(x, scores))


def program_of(
    method: Method,
    trust: Trust | None = None,
    *,
    weights: str | None = None,
    from_features: bool = False,
    min_accuracy: float | None = None,
) -> Program:
    """Put a fitted method, its frozen backbone and its confidence together.

    Args:
        method: A fitted method.
        trust: How far its labels can be trusted, if anybody knows.
        weights: The file with the frozen backbone's weights, if it is not where it was.
        from_features: Leave the frozen backbone out: features in.
        min_accuracy: Find how sure labels must be so that this share of them is right.

    Raises:
        PrenError: If the method cannot be exported, or something it needs is missing.
    """
    scores, preprocessing, backbone = method.module(), method.preprocessing_, None
    if from_features and len(method.sample_shape_) > 1:
        raise PrenError(
            "export-images", "This model takes images, and has no features to begin with: leave --from-features out."
        )
    if method.extractor_ is not None and len(method.sample_shape_) > 1:
        if trust is not None and trust.familiarity is not None:
            raise PrenError(
                "export-unsupported",
                "How familiar photographs look was learned from what goes into a stage (--train-from), which an "
                "exported model does not stop at: fit with --rehearsals 0, or with --finetune.",
            )
        tail = cast(nn.Module, scores.features).state_dict()
        made = whole_backbone(method.extractor_, weights, tail)
        scores.features, preprocessing = made.network, made.preprocessing
    elif method.extractor_ is not None and not from_features:
        frozen = recorded_backbone(method.extractor_, weights, method.tail_)
        if len(frozen.parts) > 1:
            raise PrenError(
                "export-unsupported",
                f"{frozen.facts['backbone']} want photographs of their own sizes each, and an exported model takes "
                "them in one: export it without them (--from-features), or fit with one backbone.",
            )
        backbone, preprocessing = frozen.parts[0].network, frozen.parts[0].preprocessing
    known = None if trust is None else TrustModule(trust, method.classes_, method.setting_)
    shape = method.sample_shape_ if preprocessing is None else preprocessing.sample_shape
    whole = Whole(preprocessing is not None, backbone, scores, known).eval().requires_grad_(False)
    kind = torch.float32 if preprocessing is None else torch.uint8
    return Program(
        module=whole,
        input_name="features" if len(shape) == 1 else "images",
        example=torch.zeros((2, *shape), dtype=kind),
        outputs=("scores",) if known is None else ("scores", "confidence"),
        facts={
            "pren": __version__,
            "method": method.name,
            **_classes(method),
            **_sureness(trust, min_accuracy),
            "input": {"shape": list(shape), "type": str(kind).removeprefix("torch.")},
            "preprocessing": _preparing(preprocessing),
        },
    )


def _classes(method: Method) -> dict[str, Any]:
    table = method.classes_
    return {
        "classes": list(table.names),
        "seen": table.seen.tolist(),
        "setting": method.setting_,
        "candidates": np.flatnonzero(table.among(candidates_of(method.setting_))).tolist(),
        "gamma": method.gamma if method.chosen_gamma_ is None else method.chosen_gamma_,
    }


def _sureness(trust: Trust | None, min_accuracy: float | None) -> dict[str, Any]:
    """The share of right labels that was asked for, and the least confidence of a label that is to be kept."""
    if min_accuracy is None:
        return {}
    if not 0 < min_accuracy <= 1:
        raise PrenError("option-value", f"min_accuracy must be more than 0 and at most 1, not {min_accuracy}.")
    if trust is None:
        raise PrenError("no-rehearsals", "Nobody knows how sure labels are. Rehearsals tell: pren fit --rehearsals 10.")
    least = threshold(trust.levels, min_accuracy)
    if math.isinf(least):
        raise PrenError(
            "accuracy-unreachable",
            f"Not even the surest labels are right in {min_accuracy:.0%} of cases: ask for a lower --min-accuracy.",
        )
    return {"min_accuracy": min_accuracy, "threshold": least}


def _preparing(preprocessing: Preprocessing | None) -> dict[str, Any] | None:
    """What to do with a photograph before it goes in; the normalisation is inside."""
    if preprocessing is None:
        return None
    facts = preprocessing.model_dump(mode="json", exclude={"sample_shape", "mean", "std"})
    channels, height, width = cast(tuple[int, int, int], preprocessing.sample_shape)
    return {"mode": "RGB" if channels == 3 else "L", "height": height, "width": width, **facts}
