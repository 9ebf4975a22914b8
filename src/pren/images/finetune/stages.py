"""A network cut in two before one of its stages: the front stays as it is and is computed once, the tail learns.

The front is the network itself, stopped where the stage begins. The tail is a copy in which everything that is done by
then does nothing. That this is the same network is not believed but tried, on an image of noise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pren.foundation.errors import PrenError, suggest

# How networks call what follows one another: EfficientNet, ViT; ConvNeXt; Swin; ResNet; RegNet.
STAGE = re.compile(r"(blocks|stages|layers)[._]\d+|(layer|stage|s)\d+")
POSITIONS = "_pos_embed"  # what a vision transformer does between its patches and its blocks
TOLERANCE = 1e-4  # of what front and tail make of an image, against the whole


@dataclass(frozen=True)
class Stage:
    """A place where a network can be cut.

    Attributes:
        name: Of the module that the tail begins with.
        shape: What goes into it, of one image.
    """

    name: str
    shape: tuple[int, ...]

    @property
    def bytes_per_image(self) -> int:
        """What keeping that takes, in half precision."""
        return 2 * math.prod(self.shape)


class Front(nn.Module):
    """Turns images into what goes into a stage of a network."""

    def __init__(self, model: nn.Module, stage: str) -> None:
        super().__init__()
        self.model = model
        self.stage = stage

    def forward(self, images: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, ...)."""
        with _stopped(self.model.get_submodule(self.stage)):
            try:
                self.model(images)
            except _ReachedError as reached:
                return reached.given
        raise PrenError("stage-unused", f"The network does not use its {self.stage}.")


def list_stages(model: nn.Module, images: Tensor) -> list[Stage]:
    """Where a network can be cut, from its first stage to its last.

    Args:
        model: In evaluation mode.
        images: (N, C, H, W), such as it takes.
    """
    found = []
    for name, _ in model.named_modules():
        if STAGE.fullmatch(name) and name.count(".") <= 1:
            try:
                tail_of(model, name, images)
            except PrenError:
                continue
            with torch.inference_mode():
                found.append(Stage(name, tuple(Front(model, name)(images).shape[1:])))
    return found


def find_stage(model: nn.Module, wanted: str | int, images: Tensor) -> Stage:
    """A stage by its name, or by how many there are from it to the end.

    Raises:
        PrenError: If there is no such stage.
    """
    stages = list_stages(model, images)
    if not stages:
        raise PrenError(
            "stages-unknown", "This network's stages cannot be told apart: train all of it, or keep it frozen."
        )
    if isinstance(wanted, int) or wanted.isdecimal():
        if not 1 <= int(wanted) <= len(stages):
            raise PrenError(
                "stage-unknown", f"The network has {len(stages)} stages: take 1 to {len(stages)}, counted from the end."
            )
        return stages[-int(wanted)]
    for stage in stages:
        if stage.name == wanted:
            return stage
    raise PrenError(
        "stage-unknown", f"There is no stage {wanted!r}. {suggest(wanted, [stage.name for stage in stages])}"
    )


def tail_of(model: nn.Module, stage: str, images: Tensor) -> nn.Module:
    """A copy of a network that takes what goes into one of its stages.

    Args:
        model: In evaluation mode.
        stage: The name of a module.
        images: (N, C, H, W) to try it on.

    Raises:
        PrenError: If front and tail together are not the network.
    """
    if stage not in dict(model.named_modules()):
        raise PrenError("stage-uncuttable", f"The network cannot be cut before {stage}: it has no such part.")
    tail = deepcopy(model)
    for name in _outermost(_done_before(model, stage, images)):
        tail.set_submodule(name, nn.Identity())
    if hasattr(tail, POSITIONS):
        tail.__dict__[POSITIONS] = _as_it_is
    try:
        with torch.inference_mode():
            whole = model(images)
            apart = tail(Front(model, stage)(images))
            same = whole.shape == apart.shape
            if same and not whole.is_meta:  # a network without memory has no numbers to compare
                same = torch.allclose(whole, apart, rtol=TOLERANCE, atol=TOLERANCE)
    except Exception as error:  # any network can fail in any way
        raise PrenError("stage-uncuttable", f"The network cannot be cut before {stage} ({error}).") from error
    if not same:
        raise PrenError("stage-uncuttable", f"The network cannot be cut before {stage}: more goes into what follows.")
    return tail


class _ReachedError(Exception):
    """Where a front stops, with what would have gone on."""

    def __init__(self, given: Tensor) -> None:
        super().__init__()
        self.given = given


@contextmanager
def _stopped(stage: nn.Module) -> Iterator[None]:
    def stop(module: nn.Module, given: tuple[Any, ...]) -> None:
        raise _ReachedError(given[0])

    hook = stage.register_forward_pre_hook(stop)
    try:
        yield
    finally:
        hook.remove()


def _done_before(model: nn.Module, stage: str, images: Tensor) -> list[str]:
    """The modules that are done when a stage is reached."""
    done: list[str] = []
    hooks = [
        module.register_forward_hook(lambda *_, name=name: done.append(name)) for name, module in model.named_modules()
    ]
    try:
        with torch.inference_mode():
            Front(model, stage)(images)
    finally:
        for hook in hooks:
            hook.remove()
    return list(dict.fromkeys(done))


def _outermost(names: list[str]) -> list[str]:
    """Those that are not within others of them."""
    return [name for name in names if not any(name.startswith(f"{other}.") for other in names)]


def _as_it_is(x: Tensor) -> Tensor:
    return x
