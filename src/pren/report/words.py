"""How text and numbers are shown: filters of the templates, and what cleans everything that they put out."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from pren.foundation.text import visible


def shown(value: object) -> object:
    """What a template puts out, before Jinja escapes it; markup passes as it is.

    Control characters become visible, numbers are short, None is nothing, and no line begins with a per cent sign.
    """
    if hasattr(value, "__html__"):
        return value
    if value is None:
        return ""
    return visible(number(value) if isinstance(value, float) else value).replace(" %", "\N{NO-BREAK SPACE}%")


def soft(name: object) -> Markup:
    """A name that can break after its underscores, stops and slashes, where a line is short."""
    escaped = str(escape(shown(name)))  # not Markup, which would escape what is put into it
    return Markup(re.sub(r"([_.:/\\-]+)(?=[^\W_])", r"\1<wbr>", escaped))


def number(value: float) -> str:
    """At most two digits after the point: 0.126 as "0.13", 1.0 as "1"."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(share: float | None, digits: int = 0) -> str:
    """0.664 as "66 %"; a dash where it is not known."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def counted(count: int, one: str, many: str | None = None) -> str:
    """1 as "1 class", 1200 as "1,200 classes"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def short(value: object) -> str:
    """A parameter: a number with three digits that matter, anything else as it is."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
