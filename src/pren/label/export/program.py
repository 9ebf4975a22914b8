"""A model as one torch module from inputs to outputs, with the facts that its user needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from pren.data import how_to_rehearse
from pren.foundation.errors import PrenError
from pren.foundation.version import __version__
from pren.images.photographs import recorded_backbone, whole_backbone
from pren.images.preprocessing import Preprocessing
from pren.methods.base import Method
from pren.problem import ClassTable, candidates_of
from pren.trust import Trust
from pren.trust.confidence import threshold
from pren.trust.module import TrustModule


@dataclass(frozen=True, eq=False)
class Program:
    """What is exported.

    Attributes:
        module: Inputs (N, *shape) -> scores (N, L) float64 and, where it is known, confidence (N,) float64.
        input_name: "images" or "features".
        example: (2, *shape), of the type of the input.
        outputs: The names of the outputs.
        facts: Stored in the file, JSON-ready.
    """

    module: nn.Module
    input_name: str
    example: Tensor
    outputs: tuple[str, ...]
    facts: dict[str, Any]


class Whole(nn.Module):
    """From levels (0 to 255) to features, scores and confidence; steps that a model lacks are left out."""

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
            x = self.backbone(x).half().float()  # rounded as in the cache, which the model was trained on
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
    """Join a fitted method, its frozen backbone and its confidence.

    Args:
        method: A fitted method.
        trust: How far to trust its labels; None if that is not known.
        weights: The file with the frozen backbone's weights, if it has moved.
        from_features: Leave the frozen backbone out: the program takes features.
        min_accuracy: Store the confidence from which on this share of the labels is right.

    Raises:
        PrenError: If the method cannot be exported, or a file that it needs is missing.
    """
    scores, preprocessing, backbone = method.module(), method.preprocessing_, None
    if len(method.sample_shape_) > 1:
        if from_features:
            raise PrenError("export-images", "This model takes photographs, not features: omit --from-features.")
        if method.extractor_ is not None:
            preprocessing = _complete(scores, method.extractor_, weights, trust)
    elif method.extractor_ is not None and not from_features:
        backbone, preprocessing = _frozen(method, weights)
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
            **_threshold(trust, method.classes_, min_accuracy),
            "input": {"shape": list(shape), "type": str(kind).removeprefix("torch.")},
            "preprocessing": _preparation(preprocessing),
        },
    )


def _complete(
    scores: nn.Module, extractor: dict[str, Any], weights: str | None, trust: Trust | None
) -> Preprocessing | None:
    """Put the frozen stages in front of the trained ones; returns what the first one takes."""
    if trust is not None and trust.familiarity is not None:
        raise PrenError(
            "export-unsupported",
            "A model of --train-from cannot be exported with familiarity: fit with --rehearsals 0, or with --finetune.",
        )
    tail = cast(nn.Module, scores.features).state_dict()
    made = whole_backbone(extractor, weights, tail)
    scores.features = made.network
    return made.preprocessing


def _frozen(method: Method, weights: str | None) -> tuple[nn.Module, Preprocessing]:
    """The backbone that made the features, and what it takes."""
    frozen = recorded_backbone(method.extractor_ or {}, weights, method.tail_)
    if len(frozen.parts) > 1:
        raise PrenError(
            "export-unsupported",
            f"{frozen.facts['backbone']} take photographs of different sizes, and an exported model takes one size: "
            "add --from-features, or fit with one backbone.",
        )
    return frozen.parts[0].network, frozen.parts[0].preprocessing


def _classes(method: Method) -> dict[str, Any]:
    table = method.classes_
    return {
        "classes": list(table.names),
        "seen": table.seen.tolist(),
        "setting": method.setting_,
        "candidates": np.flatnonzero(table.among(candidates_of(method.setting_))).tolist(),
        "gamma": method.gamma if method.chosen_gamma_ is None else method.chosen_gamma_,
    }


def _threshold(trust: Trust | None, classes: ClassTable, min_accuracy: float | None) -> dict[str, Any]:
    """The share of right labels that is asked for, and the least confidence of labels to keep."""
    if min_accuracy is None:
        return {}
    if not 0 < min_accuracy <= 1:
        raise PrenError("option-value", f"--min-accuracy must be more than 0 and at most 1, not {min_accuracy}.")
    if trust is None:
        raise PrenError("no-rehearsals", f"The model was not rehearsed: {how_to_rehearse(classes)}.")
    least = threshold(trust.levels, min_accuracy)
    if math.isinf(least):
        raise PrenError(
            "accuracy-unreachable",
            f"Even of the surest labels, fewer than {min_accuracy:.0%} are right: use a lower --min-accuracy.",
        )
    return {"min_accuracy": min_accuracy, "threshold": least}


def _preparation(preprocessing: Preprocessing | None) -> dict[str, Any] | None:
    """How to prepare a photograph; the module itself normalises it."""
    if preprocessing is None:
        return None
    facts = preprocessing.model_dump(mode="json", exclude={"sample_shape", "mean", "std"})
    channels, height, width = cast(tuple[int, int, int], preprocessing.sample_shape)
    return {"mode": "RGB" if channels == 3 else "L", "height": height, "width": width, **facts}
