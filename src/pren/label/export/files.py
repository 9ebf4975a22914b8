"""A model as a file: ONNX, or a program of torch.export."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from pren.foundation.errors import PrenError
from pren.foundation.extras import need
from pren.foundation.files import write_bytes
from pren.images.weights import first_line
from pren.label.export.program import Program, program_of
from pren.label.predictor import Predictor

FACTS = "pren"  # a property of an ONNX file, an extra file (.json) of torch's


def export(
    predictor: Predictor,
    file: str | Path,
    format: str = "onnx",
    *,
    weights: str | None = None,
    from_features: bool = False,
    min_accuracy: float | None = None,
) -> dict[str, Any]:
    """Write a model as one file that runs without pren.

    Args:
        predictor: The model and its trust.
        file: The file to write; it is replaced if it exists.
        format: "onnx" or "torch".
        weights: The file with the frozen backbone's weights, if it has moved.
        from_features: Leave the frozen backbone out: the file takes features.
        min_accuracy: Store the confidence from which on this share of the labels is right.

    Returns:
        The facts in the file.

    Raises:
        PrenError: If the model cannot be exported, or a file or package that it needs is missing.
    """
    if format not in FORMATS:
        raise PrenError("unknown-name", f"There is no format {format!r}: use {' or '.join(FORMATS)}.")
    if format == "onnx":
        need("onnxscript", "export")  # before the work
    program = program_of(
        predictor.model, predictor.trust, weights=weights, from_features=from_features, min_accuracy=min_accuracy
    )
    write_bytes(Path(file), as_bytes(program, format))
    return program.facts


def as_bytes(program: Program, format: str) -> bytes:
    """The content of the file; a `PrenError` if torch cannot make it."""
    with _explained(program.facts["method"]):
        return FORMATS[format](program, _traced(program))


def _traced(program: Program) -> ExportedProgram:
    """The module as a graph, for any number of inputs."""
    shapes = ({0: Dim("N")},)
    with torch.no_grad():
        return torch.export.export(program.module, (program.example,), dynamic_shapes=shapes, strict=False)


def _as_onnx(program: Program, graph: ExportedProgram) -> bytes:
    made = torch.onnx.export(
        graph, (), input_names=[program.input_name], output_names=list(program.outputs), dynamo=True, verbose=False
    )
    assert made is not None
    proto = made.model_proto
    entry = proto.metadata_props.add()
    entry.key, entry.value = FACTS, json.dumps(program.facts, allow_nan=False)
    content: bytes = proto.SerializeToString()
    return content


def _as_torch(program: Program, graph: ExportedProgram) -> bytes:
    graph.example_inputs = None  # torch would pickle them
    buffer = io.BytesIO()
    torch.export.save(graph, buffer, extra_files={f"{FACTS}.json": json.dumps(program.facts, allow_nan=False)})
    return buffer.getvalue()


FORMATS: Mapping[str, Callable[[Program, ExportedProgram], bytes]] = {"onnx": _as_onnx, "torch": _as_torch}


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Hide torch's warnings, and turn its errors into a `PrenError`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except MemoryError:
        raise
    except Exception as error:  # a foreign backbone can raise anything
        raise PrenError("export-failed", f"torch cannot export this model of {name}: {first_line(error)}") from error
