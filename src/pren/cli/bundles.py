"""Groups of options: a parameter of a verb that is a dataclass gives the verb one option per field."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_args, get_type_hints

from typer.models import OptionInfo

from pren.cli.options import PANELS

Verb = Callable[..., None]


def bundled(verb: Verb) -> Verb:
    """Replace every dataclass among the parameters of a verb by its fields."""
    hints = get_type_hints(verb, include_extras=True)
    bundles: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        if parameter.name in bundles:
            bundle = bundles[parameter.name]
            types = get_type_hints(bundle, include_extras=True)
            parameters += [_option(field.name, types[field.name], field.default) for field in fields(bundle)]
        else:
            parameters.append(_option(parameter.name, hints[parameter.name], parameter.default))
    parameters.sort(key=_panel)  # stable: the order within a panel stays

    @wraps(verb)
    def run(**given: Any) -> None:
        made = {}
        for name, bundle in bundles.items():
            made[name] = bundle(**{field.name: given.pop(field.name) for field in fields(bundle)})
        verb(**given, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _panel(parameter: inspect.Parameter) -> int:
    """The place of an option in the help: without a panel first, for experts last."""
    known = (part for part in get_args(parameter.annotation) if isinstance(part, OptionInfo))
    panel = next((part.rich_help_panel for part in known), None)
    return PANELS.index(panel) + 1 if panel in PANELS else 0


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
