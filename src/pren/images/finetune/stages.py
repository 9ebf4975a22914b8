"""Cut a network in two before one of its stages: the front is frozen and computed once, the tail is trained.

The front is the network itself, stopped where the stage begins. The tail is a copy in which all modules before the
stage are replaced by the identity. Both together are compared with the whole network on a test image.
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

# The names of stages in EfficientNet, ViT; ConvNeXt; Swin; ResNet; RegNet.
STAGE = re.compile(r"(blocks|stages|layers)[._]\d+|(layer|stage|s)\d+")
POSITIONS = "_pos_embed"  # the method of a vision transformer between its patches and its blocks
TOLERANCE = 1e-4  # of the output of front and tail, against that of the whole network


@dataclass(frozen=True)
class Stage:
    """A place where a network can be cut.

    Attributes:
        name: Of the first module of the tail.
        shape: Of its input for one image.
    """

    name: str
    shape: tuple[int, ...]

    @property
    def bytes_per_image(self) -> int:
        """The size of its input in half precision."""
        return 2 * math.prod(self.shape)


class Front(nn.Module):
    """Turns images into the input of a stage of a network."""

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
        raise PrenError("stage-unused", f"The network does not use {self.stage}: choose another stage.")


def list_stages(model: nn.Module, images: Tensor) -> list[Stage]:
    """Where a network in evaluation mode can be cut, from its first stage to its last; images are (N, C, H, W)."""
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
    """A stage by its name, or by its number counted from the end; `PrenError` if there is none."""
    stages = list_stages(model, images)
    if not stages:
        raise PrenError("stages-unknown", "This network has no known stages: train all of it, or keep it frozen.")
    if isinstance(wanted, int) or wanted.isdecimal():
        if not 1 <= int(wanted) <= len(stages):
            message = f"The network has {len(stages)} stages: choose 1 to {len(stages)}, counted from the end."
            raise PrenError("stage-unknown", message)
        return stages[-int(wanted)]
    for stage in stages:
        if stage.name == wanted:
            return stage
    hint = suggest(wanted, [stage.name for stage in stages])
    raise PrenError("stage-unknown", f"There is no stage {wanted!r}. {hint}")


def tail_of(model: nn.Module, stage: str, images: Tensor) -> nn.Module:
    """A copy of a network that takes the input of one of its stages.

    Args:
        model: In evaluation mode.
        stage: The name of a module.
        images: (N, C, H, W) to test it with.

    Raises:
        PrenError: If front and tail together do not compute the same as the network.
    """
    if stage not in dict(model.named_modules()):
        raise PrenError("stage-uncuttable", f"The network cannot be cut before {stage}: it has no such part.")
    tail = deepcopy(model)
    for name in _outermost(_done_before(model, stage, images)):
        tail.set_submodule(name, nn.Identity())
    if hasattr(tail, POSITIONS):
        tail.__dict__[POSITIONS] = _identity
    try:
        with torch.inference_mode():
            whole = model(images)
            apart = tail(Front(model, stage)(images))
            same = whole.shape == apart.shape
            if same and not whole.is_meta:  # a network on the meta device has no numbers
                same = torch.allclose(whole, apart, rtol=TOLERANCE, atol=TOLERANCE)
    except Exception as error:  # networks can raise anything
        raise PrenError("stage-uncuttable", f"The network cannot be cut before {stage} ({error}).") from error
    if not same:
        raise PrenError("stage-uncuttable", f"The network cannot be cut before {stage}: its tail needs other inputs.")
    return tail


class _ReachedError(Exception):
    """Stops a front, with the input of the stage."""

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
    """The modules that have finished when a stage is reached."""
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
    """The modules that are not part of another one in the list."""
    return [name for name in names if not any(name.startswith(f"{other}.") for other in names)]


def _identity(x: Tensor) -> Tensor:
    return x
