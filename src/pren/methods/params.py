"""Parameters and learned arrays of a method.

A method declares both in its class body::

    reg: float = param(1.0, "How much large weights cost.", gt=0, search=Real(1e-2, 1e4, log=True))
    weights_: Matrix = learned("d", "m")

Parameters give the constructor, the documentation, the schema for YAML and the command line, and the search space.
Learned arrays give saving and loading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from pren.foundation.errors import PrenError, suggest
from pren.foundation.registry import Registry
from pren.methods.space import Dimension

if TYPE_CHECKING:
    from pren.methods.base import Method

MOST = 10**9 - 1  # more than any machine can do; beyond, NumPy and the names of checkpoints fail
Positive = Annotated[int, Field(ge=1, le=MOST)]


@dataclass(frozen=True)
class Param:
    """One parameter.

    Attributes:
        default: The default value.
        doc: One sentence.
        search: What `pren tune` tries; None if it is not tuned.
        bounds: Limits, as in pydantic's `Field`.
        among: The registry, if the value is a registered name.
    """

    default: Any
    doc: str
    search: Dimension | None = None
    bounds: Mapping[str, Any] = field(default_factory=dict)
    among: Registry[Any] | None = None


@dataclass(frozen=True)
class Learned:
    """An array that `fit` learns.

    Attributes:
        shape: The length of each side: "d" features, "m" attributes, "L" classes, "S" seen classes, "one" for 1, or
            the name of a parameter.
    """

    shape: tuple[str, ...]


def param(
    default: Any, doc: str, *, search: Dimension | None = None, among: Registry[Any] | None = None, **bounds: Any
) -> Any:
    """Declare a parameter; see `Param`."""
    return Param(default, doc, search, bounds, among)


def learned(*shape: str) -> Any:
    """Declare a learned array of double precision; see `Learned`."""
    return Learned(shape)


def declared(cls: type, kind: type) -> dict[str, Any]:
    """What a class and its bases declare, its own first."""
    found: dict[str, Any] = {}
    for part in cls.__mro__:
        for name, value in vars(part).get("_declared", {}).items():
            if name not in found:
                found[name] = value
    return {name: value for name, value in found.items() if isinstance(value, kind)}


@cache
def schema(method: type[Method]) -> type[BaseModel]:
    """The parameters as a pydantic model, which refuses unknown keys."""
    hints = get_type_hints(method, include_extras=True)
    fields: dict[str, Any] = {}
    for name, known in method.params.items():
        kind = hints[name]
        bounds = dict(known.bounds)
        if kind in (int, int | None):
            bounds.setdefault("le", MOST)
        if known.among is not None:
            kind = Annotated[kind, BeforeValidator(_member_of(known.among))]
        fields[name] = (kind, Field(known.default, **bounds))
    return create_model(
        f"{method.__name__}Parameters", __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **fields
    )


def _member_of(names: Registry[Any]) -> Any:
    def check(value: Any) -> Any:
        if isinstance(value, str):
            names[value]  # its error lists the names
        return value

    return check


def validate(method: type[Method], params: Mapping[str, Any]) -> dict[str, Any]:
    """Check parameters and convert them to their declared types.

    Raises:
        PrenError: It names every unknown parameter and every bad value.
    """
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in params.items()}
    known = schema(method)
    try:
        return dict(known(**plain))
    except ValidationError as error:
        problems = [_explain(detail, known.model_fields) for detail in error.errors()]
        raise PrenError("param-value", " ".join(problems)) from None


def _explain(detail: Any, known: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"Unknown parameter {name!r}. {suggest(name, known)}"
    return f"Parameter {name}={detail['input']!r}: {detail['msg'].lower()}."
