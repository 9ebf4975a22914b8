"""A fitted model as one file: safetensors, whose header carries the facts as JSON. Loading cannot run code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from pren.errors import PrenError
from pren.files import replacing
from pren.methods.base import Method
from pren.methods.params import validate
from pren.methods.registry import METHODS
from pren.problem import ClassTable
from pren.version import __version__

MODEL_FILE = "model.safetensors"
HEADER = "pren"


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal[1]
    version: str
    method: str
    params: dict[str, Any]
    class_names: list[str]
    seen: list[bool]
    normalised: bool
    setting: Literal["zsl", "gzsl"]
    sample_shape: tuple[int, ...]
    learned: dict[str, Any]


def save_model(method: Method, folder: Path) -> None:
    """Write a fitted method to a folder, in place of what model was there."""
    tensors, learned = method._state()
    table = method.classes_
    facts = _Facts(
        format=1,
        version=__version__,
        method=method.name,
        params=method.get_params(),
        class_names=list(table.names),
        seen=table.seen.tolist(),
        normalised=table.normalised,
        setting=method.setting_,
        sample_shape=method.sample_shape_,
        learned=learned,
    )
    content = {f"model.{key}": value.cpu().contiguous() for key, value in tensors.items()}
    content["signatures"] = torch.from_numpy(np.ascontiguousarray(table.signatures))
    with replacing(folder / MODEL_FILE) as temporary:
        save_file(content, temporary, metadata={HEADER: facts.model_dump_json()})


def load_model(folder: str | Path) -> Method:
    """Read the model of a folder.

    Raises:
        PrenError: If there is none, or the file is damaged or of another format.
    """
    path = Path(folder) / MODEL_FILE
    if not path.is_file():
        raise PrenError(f"There is no model in {folder}: {MODEL_FILE} is missing.")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})[HEADER])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  (not a dict)
        facts = _Facts.model_validate(header)
        entry = METHODS[facts.method]
        method = entry.method(**validate(entry.method, facts.params))
        table = ClassTable.build(facts.class_names, tensors.pop("signatures"), np.array(facts.seen), normalise=False)
        method.classes_ = replace(table, normalised=facts.normalised)
        method.setting_ = facts.setting
        method.sample_shape_ = facts.sample_shape
        learned = {key.removeprefix("model."): value for key, value in tensors.items()}
        method._restore(learned, facts.learned)
    except (PrenError, OSError, SafetensorError, ValueError, LookupError, TypeError, RuntimeError) as error:
        raise PrenError(f"{path} is damaged or was not written by this version of pren: {error}") from error
    return method
