"""Methods that train a backbone."""

from __future__ import annotations

import logging
from copy import copy
from dataclasses import replace
from typing import Any, cast

from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.images.backbones import DEFAULT, check_takes, create_backbone, find_backbone
from pren.images.decoded import decoded_once
from pren.images.preprocessing import Geometry, Preprocessing
from pren.images.timm_backbone import TimmBackbone
from pren.methods.network import NetworkMethod
from pren.methods.params import param
from pren.methods.preparation import Preparation
from pren.problem import Problem

log = logging.getLogger(__name__)


class EndToEnd(NetworkMethod):
    """A method that takes features, or images through a backbone that it trains.

    Attributes:
        backbone_: The backbone; None where inputs are features.
    """

    backbone: str | None = param(
        None, "The network that takes images; None for the problem's own, or ResNet-34 for image files."
    )
    weights: str | None = param(None, "Its first weights: None for pretrained ones, the path of a file, or 'random'.")
    geometry: Geometry = param(
        "whole", "How image files are brought to its size: the 'whole' image as in the paper, or as 'timm' does."
    )
    backbone_lr: float | None = param(None, "The backbone's own learning rate; None for `lr`.", gt=0)

    backbone_: str | None
    _features_made: int  # by the backbone, per image

    def _fit_preparation(self, problem: Problem) -> Preparation | None:
        if len(self.sample_shape_) == 1:
            return super()._fit_preparation(problem)
        if self.features != "raw":
            log.warning("features=%s has no effect on images: add --frozen to prepare features.", self.features)
        return None

    def _restore_preparation(self, tensors: dict[str, Tensor]) -> Preparation | None:  # type: ignore[override]
        return super()._restore_preparation(tensors) if len(self.sample_shape_) == 1 else None

    def _as_taken(self, problem: Problem) -> Problem:
        self.backbone_, self.preprocessing_ = self.backbone or problem.backbone, None
        if problem.train.photographs:
            self.backbone_ = self.backbone_ or DEFAULT
            self.preprocessing_ = find_backbone(self.backbone_).preprocessing(self.weights, self.geometry)
            both = (problem.train, problem.pool)
            train, pool = (decoded_once(inputs.prepared(self.preprocessing_)) for inputs in both)
            problem = replace(problem, train=train, pool=pool)
            self.sample_shape_ = train.sample_shape
        return super()._as_taken(problem)

    def _make_backbone(self, tensors: dict[str, Tensor] | None, **options: Any) -> tuple[nn.Module, int]:
        """The backbone and the length of its features."""
        width = self._sizes()["d"]
        shape = self.sample_shape_ if len(self.sample_shape_) > 1 else (width,)
        network, width = create_backbone(self.backbone_, shape, self.seed, **options)
        if tensors is None and self.backbone_ is not None:
            find_backbone(self.backbone_).give_weights(network, self.weights)
        elif tensors is None and self.weights is not None:
            raise PrenError("option-conflict", "The inputs are features, which need no weights: leave weights out.")
        self._features_made = width
        return network, width

    def _width(self) -> int:
        return self._features_made

    def _check_network(self) -> None:
        check_takes(self._backbone(), self.backbone_, self.sample_shape_)

    def _backbone(self) -> nn.Module:
        return cast(nn.Module, self.network_.backbone)

    def _groups(self, backbone: nn.Module, rest: nn.Module) -> list[dict[str, Any]]:
        """Adam's groups of weights: the rest first, then the backbone's, if it has any."""
        groups: list[dict[str, Any]] = [{"params": list(rest.parameters()), "lr": self.lr}]
        if trained := list(backbone.parameters()):
            groups.append({"params": trained, "lr": self.backbone_lr or self.lr})
        return groups

    def _feature_module(self) -> nn.Module:
        return self._backbone() if self.preparation_ is None else super()._feature_module()

    def _scoring_network(self) -> nn.Module:
        network = super()._scoring_network()
        if self.preparation_ is None:  # the backbone has made the features
            network = copy(network)
            network._modules = {**network._modules, "backbone": nn.Identity()}
        return network

    def module(self) -> nn.Module:
        """See `Method.module`."""
        module = super().module()
        if isinstance(module.features, TimmBackbone):
            module.features.precision = "float32"  # few runtimes for exported models have bfloat16
        return module

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        known = None if self.preprocessing_ is None else self.preprocessing_.model_dump(mode="json")
        return tensors, {**facts, "backbone": self.backbone_, "preprocessing": known}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        backbone, known = facts["backbone"], facts["preprocessing"]
        if not (backbone is None or isinstance(backbone, str)):
            raise ValueError("the backbone has no name")
        self.backbone_ = backbone
        self.preprocessing_ = None if known is None else Preprocessing.model_validate(known)
        if self.preprocessing_ is not None and self.preprocessing_.sample_shape != self.sample_shape_:
            raise ValueError("image files would be brought to another shape than the inputs have")
        super()._restore(tensors, facts)
