"""Parameters of a method: one schema, read off its constructor, for Python, YAML and the command line."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, get_type_hints

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from pren.errors import PrenError, suggest

MOST = 10**9 - 1  # more than any machine can do; NumPy gives up somewhere beyond, and so do the names of checkpoints
Positive = Annotated[int, Field(ge=1, le=MOST)]
NotNegative = Annotated[int, Field(ge=0, le=MOST)]
Seed = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0)]


@cache
def schema(method: type) -> type[BaseModel]:
    """The constructor's annotations as a pydantic model that refuses unknown keys."""
    hints = get_type_hints(method.__init__, include_extras=True)  # type: ignore[misc]
    parameters = list(inspect.signature(method).parameters.values())
    fields: dict[str, Any] = {p.name: (hints[p.name], p.default) for p in parameters}
    return create_model(
        f"{method.__name__}Parameters", __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **fields
    )


def validate(method: type, params: Mapping[str, Any]) -> dict[str, Any]:
    """Check parameters and bring them to their declared types.

    Raises:
        PrenError: Naming every parameter that is unknown or has a value it cannot have.
    """
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in params.items()}
    known = schema(method)
    try:
        return dict(known(**plain))
    except ValidationError as error:
        problems = [_explain(detail, known.model_fields) for detail in error.errors()]
        raise PrenError(" ".join(problems)) from None


def _explain(detail: Any, known: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"Unknown parameter {name!r}. {suggest(name, known)}"
    return f"Parameter {name}={detail['input']!r}: {detail['msg'].lower()}."
