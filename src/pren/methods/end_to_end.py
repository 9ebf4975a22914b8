"""What methods that train a backbone together with the rest have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pren.methods.base import Method
from pren.problem import Problem
from pren.vision.backbones import DEFAULT, create_backbone, preprocessing_of
from pren.vision.preprocessing import Geometry, Preprocessing


class EndToEnd(Method):
    """A method whose inputs may be images, which go through a backbone.

    Attributes:
        backbone: What the user asks for; None takes the problem's own, or ResNet-34 for image files.
        weights: What it starts from: None for trained weights, the path of a file, or "random".
        geometry: How image files are brought to its size.
        backbone_: The backbone that was used; None where inputs are features.
    """

    backbone: str | None
    weights: str | None
    geometry: Geometry
    seed: int

    backbone_: str | None

    def _prepared(self, problem: Problem) -> Problem:
        """The problem with its image files, if it has any, as the backbone wants them."""
        train, pool = problem.train, problem.pool
        self.backbone_, self.preprocessing_ = self.backbone or problem.backbone, None
        if train.photographs and pool.photographs:
            self.backbone_ = self.backbone_ or DEFAULT
            self.preprocessing_ = preprocessing_of(self.backbone_, self.weights, self.geometry)
            train, pool = train.prepared(self.preprocessing_), pool.prepared(self.preprocessing_)
            self.sample_shape_ = train.sample_shape
        return replace(problem, train=train, pool=pool)

    def _backbone_facts(self) -> dict[str, Any]:
        preprocessing = None if self.preprocessing_ is None else self.preprocessing_.model_dump(mode="json")
        return {"backbone": self.backbone_, "preprocessing": preprocessing}

    def _restore_backbone(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """The inverse of `_backbone_facts`.

        Args:
            tensors: Of the model; the backbone's names begin with "backbone.".
            facts: As they were saved.

        Raises:
            ValueError: If they do not belong together. (KeyError means the same.)
        """
        backbone, known = facts["backbone"], facts.get("preprocessing")
        if not (backbone is None or isinstance(backbone, str)):
            raise ValueError("the backbone has no name")
        self.backbone_ = backbone
        self.preprocessing_ = None if known is None else Preprocessing.model_validate(known)
        if self.preprocessing_ is not None and self.preprocessing_.sample_shape != self.sample_shape_:
            raise ValueError("image files would be brought to another shape than the inputs have")
        with torch.device("meta"):  # without memory: a file may name any network there is
            empty = create_backbone(backbone, self.sample_shape_, self.seed)[0].state_dict()
        if any(tensors[f"backbone.{name}"].shape != value.shape for name, value in empty.items()):
            raise ValueError(f"the weights are not those of a {backbone}")
