"""The service: from photographs or features to classes, over HTTP."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import anyio
import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import UploadFile

from pren.foundation.version import __version__
from pren.label.predictions import Row
from pren.methods.base import Method
from pren.review.admission import Admission, Limits, check_count, check_picture, read_body, unreadable
from pren.review.app import Fault, RefusedError
from pren.review.batching import Batcher, Wanted
from pren.review.metering import Meter
from pren.runs.classes import Description, Model, add_class

LARGEST = 1e9  # number of a feature: squares of larger ones could overflow
MOST_CLASSES = 10_000
TEXT = 10_000  # characters
MOST_SAID = 1 << 20  # bytes of a request that adds a class

Among = Literal["unseen", "seen", "all"]


class Guess(BaseModel):
    """A class and its score; null if the score is no finite number."""

    name: str
    score: float | None


class Prediction(BaseModel):
    """The best classes of one input, best first."""

    input: str
    classes: list[Guess]
    confidence: float | None
    familiarity: float | None


class Predicted(BaseModel):
    """An entry for every input, in their order."""

    predictions: list[Prediction]


class KnownClass(BaseModel):
    """A class, and whether it has labelled inputs."""

    name: str
    seen: bool


class NewClass(BaseModel):
    """A class to add: sentences about it, or its attributes by name."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=200)
    descriptions: list[Annotated[str, Field(min_length=1, max_length=TEXT)]] = Field([], max_length=100)
    attributes: dict[str, Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]] = {}


class Health(BaseModel):
    """The service answers."""

    status: Literal["ok"]
    version: str


BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["images"],
                    "properties": {"images": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                }
            },
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["features"],
                    "properties": {"features": {"type": "array", "items": {}, "description": "One input, or several."}},
                }
            },
        },
    }
}
NEW_CLASS: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": NewClass.model_json_schema()}}}
}
REFUSALS: dict[int | str, dict[str, Any]] = {status: {"model": Fault} for status in (408, 411, 413, 415, 503)}


def service_router(batcher: Batcher, recipe: Any, limits: Limits, meter: Meter) -> APIRouter:
    """Everything that the service answers.

    Args:
        batcher: With the model.
        recipe: How its classes are described, of `open_model`; None if that is not known.
        limits: What it takes at most.
        meter: Counts.
    """
    router, admission = APIRouter(), Admission(limits)
    known = {"recipe": recipe}

    @router.post("/predict", openapi_extra=BODY, responses=REFUSALS)
    async def predict(
        request: Request, top: Annotated[int, Query(ge=1, le=1000)] = 5, among: Among | None = None
    ) -> Predicted:
        """The best classes of photographs (a form with files, or the bytes of one) or of features (JSON)."""
        with meter.request(), admission.admit(request):
            names, inputs = await _inputs(await read_body(request, limits), limits, batcher.predictor.model)
            try:
                with anyio.fail_after(limits.seconds):
                    rows = await batcher.predict(Wanted(inputs, top, among))
            except TimeoutError as error:
                raise RefusedError(503, "busy", "There was no time for this request.", {"Retry-After": "5"}) from error
            meter.inputs.inc(len(rows))
            return Predicted(predictions=[_shown(name, row) for name, row in zip(names, rows, strict=True)])

    @router.get("/classes")
    async def classes() -> list[KnownClass]:
        """Every class of the model."""
        return _classes(batcher.predictor.model)

    @router.post("/classes", status_code=201, openapi_extra=NEW_CLASS, responses=REFUSALS)
    async def add(request: Request) -> list[KnownClass]:
        """Add a class, until the service stops: `pren classes add` keeps one. There is no confidence from then on."""
        with admission.admit(request):
            whole = await read_body(request, replace(limits, bytes=min(limits.bytes, MOST_SAID)))
            new = _new_class(await whole.body())
            await batcher.change(partial(changed, new))
        return _classes(batcher.predictor.model)

    def changed(new: NewClass, method: Method) -> Method:
        if len(method.classes_) >= MOST_CLASSES:
            raise RefusedError(409, "too-many", f"The model has {MOST_CLASSES} classes already.")
        said = Description(numbers=new.attributes, texts=new.descriptions)
        made = add_class(Model(method, known["recipe"]), new.name, said)
        known["recipe"] = made.recipe
        return made.method

    @router.get("/health")
    async def health() -> Health:
        """Whether the service answers; needs no token."""
        return Health(status="ok", version=__version__)

    return router


def _classes(method: Method) -> list[KnownClass]:
    table = method.classes_
    return [KnownClass(name=name, seen=bool(seen)) for name, seen in zip(table.names, table.seen, strict=True)]


def _new_class(body: bytes) -> NewClass:
    try:
        return NewClass.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from error


def _shown(name: str, row: Row) -> Prediction:
    if row.error:
        raise unreadable(name)
    classes = [Guess(name=best, score=score if math.isfinite(score) else None) for best, score in row.classes]
    return Prediction(input=name, classes=classes, confidence=row.confidence, familiarity=row.familiarity)


async def _inputs(
    request: Request, limits: Limits, method: Method
) -> tuple[list[str], list[bytes] | np.ndarray[Any, Any]]:
    """The inputs of a request, checked, and their names."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        features = await anyio.to_thread.run_sync(_features, await request.body(), method.sample_shape_, limits)
        return list(map(str, range(len(features)))), features
    if kind == "multipart/form-data":
        async with request.form(max_files=limits.count + 1, max_fields=16, max_part_size=limits.bytes) as form:
            files = [file for file in form.getlist("images") if isinstance(file, UploadFile)]
            found = [(file.filename or str(place), await file.read()) for place, file in enumerate(files)]
    elif kind == "application/octet-stream" or kind.startswith("image/"):
        found = [("0", await request.body())]
    else:
        raise RefusedError(415, "content-type", "Send photographs as multipart/form-data, or features as JSON.")
    check_count(len(found), limits)
    _check_takes_photographs(method)
    for name, content in found:
        await anyio.to_thread.run_sync(check_picture, name, content, limits)
    return [name for name, _ in found], [content for _, content in found]


def _check_takes_photographs(method: Method) -> None:
    if method.extractor_ is None and len(method.sample_shape_) == 1:
        raise RefusedError(
            422,
            "features-needed",
            'The model was trained on features of an unknown backbone: send {"features": [...]}.',
        )


def _features(body: bytes, shape: tuple[int, ...], limits: Limits) -> np.ndarray[Any, Any]:
    """(n, ...) finite numbers of the model's shape."""
    try:
        content = json.loads(body)
        if not isinstance(content, dict) or set(content) != {"features"}:
            raise ValueError('it is not an object with "features"')
        values = np.asarray(content["features"])
        if values.dtype.kind not in "iuf":
            raise ValueError("they are not numbers in rows of one length")
        values = values.astype(np.float64)
    except (ValueError, OverflowError, RecursionError) as error:
        said = "" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else f" ({error})"
        raise RefusedError(422, "features", f'Features cannot be read{said}: send {{"features": [...]}}.') from error
    if values.shape == shape:
        values = values[None]
    if values.size == 0:
        check_count(0, limits)
    if values.shape[1:] != shape:
        raise RefusedError(422, "inputs-shape", f"The model takes {shape} numbers each, not {values.shape[1:]}.")
    check_count(len(values), limits)
    if not (np.abs(values) <= LARGEST).all():
        raise RefusedError(422, "features", f"Features are numbers from {-LARGEST:g} to {LARGEST:g}.")
    return values
