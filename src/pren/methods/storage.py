"""A fitted model as one safetensors file, with facts as JSON in its header. Loading cannot run code."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pren.foundation.errors import PrenError, reason
from pren.foundation.files import check_file, check_is_text, write_tensors
from pren.foundation.version import __version__
from pren.methods.base import Method
from pren.methods.params import validate
from pren.methods.registry import METHODS
from pren.problem import ClassTable

MODEL_FILE = "model.safetensors"
HEADER = "pren"
TAIL = "tail."  # before the names of an extractor's fine-tuned weights
FORMAT: Literal[2] = 2
KINDS = {torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16}
KINDS |= {torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128}
STRANGE = "a type that no model has"
LARGEST = 1 << 32  # numbers of one input
SampleShape = Annotated[tuple[Annotated[int, Field(ge=1, le=LARGEST)], ...], Field(min_length=1, max_length=4)]


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal[2]
    version: str
    checksum: str
    method: str
    params: dict[str, Any]
    class_names: list[str]
    seen: list[bool]
    attributes: int
    normalised: bool
    setting: Literal["zsl", "gzsl"]
    sample_shape: SampleShape
    extractor: dict[str, Any] | None = None
    chosen_gamma: Annotated[float, Field(allow_inf_nan=False)] | None = None
    learned: dict[str, Any]


def save_model(method: Method, folder: Path) -> None:
    """Write a fitted method to a folder; an older model there is replaced."""
    tensors, learned = method._state()
    table = method.classes_
    facts = _Facts(
        format=FORMAT,
        version=__version__,
        checksum="",
        method=method.name,
        params=method.get_params(),
        class_names=list(table.names),
        seen=table.seen.tolist(),
        attributes=table.signatures.shape[1],
        normalised=table.normalised,
        setting=method.setting_,
        sample_shape=method.sample_shape_,
        extractor=method.extractor_,
        chosen_gamma=method.chosen_gamma_,
        learned=learned,
    )
    content = {f"model.{key}": value.cpu().contiguous() for key, value in tensors.items()}
    content |= {f"{TAIL}{key}": value.cpu().contiguous() for key, value in (method.tail_ or {}).items()}
    content["signatures"] = torch.from_numpy(np.ascontiguousarray(table.signatures))
    write_model(folder / MODEL_FILE, content, facts.model_dump(mode="json"))


def write_model(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and facts with their checksum, because models are copied without their runs."""
    header = json.dumps({**facts, "checksum": _checksum(tensors, facts)})
    write_tensors(path, tensors, {HEADER: header})


def read_model(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a model file of any format, unchecked.

    Raises:
        PrenError: If it is not a model file.
    """
    check_file(path)
    check_is_text(path)
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[HEADER])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  (not a dict)
        if not isinstance(facts, dict):
            raise TypeError("its header has no facts")
    except (OSError, SafetensorError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise PrenError("damaged", f"{path} is damaged or was not written by pren: {reason(error)}") from error
    return tensors, facts


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of the model in a folder, without its tensors; only their form is checked.

    Raises:
        PrenError: If there is no model file.
    """
    path = folder / MODEL_FILE
    check_file(path)
    check_is_text(path)
    try:
        with safe_open(path, framework="pt") as file:
            facts = _Facts.model_validate_json((file.metadata() or {})[HEADER])
        return facts.model_dump()
    except (OSError, SafetensorError, ValueError, LookupError) as error:
        raise PrenError("damaged", f"{path} is damaged or was not written by pren: {reason(error)}") from error


def read_verified(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a file from `write_model`, with its checksum verified; all numbers are finite.

    Raises:
        PrenError: If the format or the checksum differs.
    """
    tensors, facts = read_model(path)
    if isinstance(facts.get("format"), int) and facts["format"] != FORMAT:
        raise PrenError(
            "format-other",
            f"{path} was written by another version of pren (format {facts['format']}, this one reads {FORMAT}).",
        )
    bad = next((f"{name} {fault}" for name, tensor in tensors.items() if (fault := _fault(tensor))), "")
    if not bad.endswith(STRANGE) and facts.get("checksum") != _checksum(tensors, facts):
        bad = "its checksum differs"
    if bad:
        raise PrenError("damaged", f"{path} is damaged or was not written by this version of pren: {bad}")
    return tensors, facts


def _fault(tensor: Tensor) -> str:
    """What is wrong with a tensor of a model; "" if nothing is."""
    if tensor.dtype not in KINDS:  # torch cannot compute with some, not even look for NaN
        return f"holds numbers of {STRANGE}"
    return "" if tensor.isfinite().all() else "holds NaN or infinite values"


def load_model(folder: str | Path) -> Method:
    """Read the model of a folder.

    Raises:
        PrenError: If there is no model, or its file is damaged or of another format.
    """
    path = Path(folder) / MODEL_FILE
    if not path.exists():
        raise PrenError("model-missing", f"There is no model in {folder}: {MODEL_FILE} is missing.")
    tensors, header = read_verified(path)
    try:
        facts = _Facts.model_validate(header)
        kind = METHODS[facts.method].method
        method = kind(**validate(kind, facts.params))
        table = ClassTable.build(
            facts.class_names, tensors.pop("signatures"), np.array(facts.seen), normalise=False, told=True
        )
        if math.prod(facts.sample_shape) > LARGEST:
            raise ValueError(f"no input has the shape {facts.sample_shape}")
        if table.signatures.shape[1] != facts.attributes:
            raise ValueError(f"signatures have {table.signatures.shape[1]} attributes, not {facts.attributes}")
        method.classes_ = replace(table, normalised=facts.normalised)
        method.setting_ = facts.setting
        method.sample_shape_ = facts.sample_shape
        method.extractor_ = facts.extractor
        method.chosen_gamma_ = facts.chosen_gamma
        tail = {key.removeprefix(TAIL): tensors.pop(key) for key in list(tensors) if key.startswith(TAIL)}
        method.tail_ = tail or None
        learned = {key.removeprefix("model."): value for key, value in tensors.items()}
        method._restore(learned, facts.learned)
        method._restore_refinement(learned)
        if unknown := learned.keys() - method._state()[0].keys():
            raise ValueError(f"it has unknown tensors: {', '.join(sorted(unknown))}")
    except MemoryError as error:
        raise PrenError("memory", f"There is not enough memory for {path}: free some.") from error
    except (PrenError, ValueError, LookupError, ArithmeticError) as error:
        message = f"{path} is damaged or was not written by this version of pren: {reason(error)}"
        raise PrenError("damaged", message) from error
    return method


def _checksum(tensors: dict[str, Tensor], facts: dict[str, Any]) -> str:
    """Over all other facts, and the name, type, shape and bytes of every tensor."""
    others = {key: value for key, value in facts.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(others, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
