"""Models of open_clip, whose image tower and text tower share a space (the extra ``clip``).

A model is named ``clip:MODEL/TAG``, where the tag names trained weights, or ``clip:MODEL`` with the weights of a file.
The image tower is a backbone; `pren.data.describe.clip` has the text tower.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor, nn

from pren.foundation.errors import PrenError, suggest
from pren.foundation.extras import how_to_install
from pren.images.precision import Precision
from pren.images.preprocessing import Geometry, Preprocessing
from pren.images.timm_backbone import TimmBackbone
from pren.images.torchvision_operators import mend_torchvision
from pren.images.weights import RANDOM, check_connection, fill, first_line, read_tensors

log = logging.getLogger(__name__)

PREFIX = "clip:"
VISUAL = "visual."  # prefix of the image tower's tensors


@dataclass(frozen=True)
class ClipName:
    """A model of open_clip.

    Attributes:
        model: Its name in open_clip, such as ``ViT-B-32``.
        tag: The name of its trained weights; None for those of a file.
    """

    model: str
    tag: str | None = None

    @classmethod
    def parse(cls, name: str) -> ClipName:
        """Read ``clip:MODEL`` or ``clip:MODEL/TAG``; `PrenError` without open_clip or such a model or weights."""
        open_clip = import_open_clip()
        model, _, tag = name.removeprefix(PREFIX).partition("/")
        if model not in open_clip.list_models():
            hint = suggest(model, open_clip.list_models())
            raise PrenError("unknown-name", f"open_clip has no model {model!r}. {hint}")
        tags = open_clip.list_pretrained_tags_by_model(model)
        if tag and tag not in tags:
            raise PrenError("unknown-name", f"{PREFIX}{model} has no weights {tag!r}. {suggest(tag, tags)}")
        return cls(model, tag or None)

    def __str__(self) -> str:
        return f"{PREFIX}{self.model}" + (f"/{self.tag}" if self.tag else "")

    def config(self) -> dict[str, Any]:
        """The configuration of its towers in open_clip."""
        return cast(dict[str, Any], import_open_clip().get_model_config(self.model))

    def weights_config(self) -> dict[str, Any]:
        """Where its weights are and how they normalise images; for a file, as for the model's first tag."""
        open_clip = import_open_clip()
        tags = [self.tag] if self.tag else open_clip.list_pretrained_tags_by_model(self.model)
        usual = {"mean": open_clip.OPENAI_DATASET_MEAN, "std": open_clip.OPENAI_DATASET_STD}
        return usual | (dict(open_clip.get_pretrained_cfg(self.model, tags[0])) if tags else {})

    def build(self) -> Any:
        """The model with random weights, from torch's generator."""
        quick = bool(self.tag and self.weights_config().get("quick_gelu"))
        with _quiet():
            try:
                return import_open_clip().create_model(self.model, pretrained_text=False, force_quick_gelu=quick)
            except Exception as error:  # some towers belong to other libraries, which ask the hub
                message = f"{self} cannot be built ({first_line(error)}): choose another model."
                raise PrenError("backbone-unbuildable", message) from error

    def tokenizer(self) -> Any:
        """Its tokenizer."""
        with _quiet():
            try:
                return import_open_clip().get_tokenizer(self.model)
            except Exception as error:  # as above
                message = f"Cannot load the tokenizer of {self} ({first_line(error)}): choose another model."
                raise PrenError("encoder-unloadable", message) from error

    def tensors(self, file: str | None) -> dict[str, Tensor]:
        """The weights of both towers, from a file or the hub, read without running code; `PrenError` without them."""
        if file is None and self.tag is None:
            some = import_open_clip().list_pretrained_tags_by_model(self.model)[:3]
            known = f"choose {' or '.join(f'{self}/{tag}' for tag in some)}, or " if some else ""
            raise PrenError("weights-missing", f"{self} does not say which weights: {known}{self._local()}.")
        return read_tensors(Path(file or self._fetched()))

    def _fetched(self) -> str:
        """The path of its weights, from the hub or its cache on this machine."""
        config = self.weights_config()
        try:
            check_connection("/".join(config["hf_hub"].split("/")[:2]))
            with _quiet():
                return str(import_open_clip().download_pretrained(config))
        except Exception as error:  # a network can fail in any way
            message = f"Cannot fetch the weights of {self} ({first_line(error)}): {self._local()}."
            raise PrenError("weights-unreachable", message) from error

    def _local(self) -> str:
        name = f"{PREFIX}{self.model}"
        return f"name a local file, as --backbone {name} --weights FILE and --encoder {name}@FILE"


class ClipBackbone:
    """The image tower as a backbone; its features are comparable with the text tower's vectors."""

    trained = True

    def __init__(self, name: str) -> None:
        if "@" in name:
            message = f"Name the weights separately: --backbone {name.replace('@', ' --weights ')}"
            raise PrenError("weights-form", message)
        self.name = name
        self._clip = ClipName.parse(name)
        size, width = self._clip.config()["vision_cfg"]["image_size"], self._clip.config()["embed_dim"]
        self.summary = f"{size} x {size} pixels, {width} features, for signatures of the same encoder; from the hub"

    def create(self, channels: int, precision: Precision, train_statistics: bool) -> nn.Module:
        """See `TimmBackbone`."""
        if channels != 3:
            raise PrenError("backbone-input", f"Backbone {self.name!r} takes images of 3 channels, not {channels}.")
        tower = self._clip.build().visual
        tower.num_features = self._clip.config()["embed_dim"]
        return TimmBackbone(tower, self.preprocessing(), precision, train_statistics)

    def preprocessing(self, weights: str | None = None, geometry: Geometry = "whole") -> Preprocessing:
        """The size, normalisation and interpolation of its training."""
        size, wanted = self._clip.config()["vision_cfg"]["image_size"], self._clip.weights_config()
        return Preprocessing(
            sample_shape=(3, size, size),
            interpolation=wanted.get("interpolation", "bicubic"),
            geometry=geometry,
            mean=wanted["mean"],
            std=wanted["std"],
        )

    def give_weights(self, network: nn.Module, weights: str | None = None) -> None:
        """Load the image tower's weights into a network of `create`: of a file, of the tag, or none ("random")."""
        if weights == RANDOM:
            log.warning("Backbone %s has random weights: its features are meaningless.", self.name)
            return
        tensors = self._clip.tensors(weights)
        own = {key.removeprefix(VISUAL): value for key, value in tensors.items() if key.startswith(VISUAL)}
        fill(cast(TimmBackbone, network).model, own, set(), f"The weights of {self._clip}")


def text_tower(name: ClipName, file: str | None) -> Any:
    """A model of open_clip without its image tower."""
    tensors = name.tensors(file)
    with torch.random.fork_rng(devices=[]):
        model = name.build()
    model.visual = nn.Identity()
    own = {key: value for key, value in tensors.items() if not key.startswith(VISUAL)}
    fill(model, own, set(), f"The weights of {name}")
    return model.eval().requires_grad_(False)


def list_clip() -> list[str]:
    """The names of all models with trained weights; none if open_clip is not installed."""
    if find_spec("open_clip") is None:
        return []
    return [str(ClipName(model, tag)) for model, tag in import_open_clip().list_pretrained()]


def import_open_clip() -> ModuleType:
    """Return the module `open_clip`; `PrenError` if it is not installed."""
    mend_torchvision()
    try:
        return importlib.import_module("open_clip")
    except ImportError as error:
        message = f"CLIP needs open_clip, which cannot be imported ({error}): {how_to_install('clip')}."
        raise PrenError("extra-missing", message) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence open_clip, which logs to the root logger and configures it if it has no handler."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    root.addFilter(_drop)  # sees the records of the root logger only, not those of other loggers
    try:
        yield
    finally:
        root.removeFilter(_drop)
        root.removeHandler(handler)


def _drop(record: logging.LogRecord) -> bool:
    return False
