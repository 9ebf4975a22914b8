"""How templates show text and numbers."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from pren.foundation.errors import visible


def shown(value: object) -> object:
    """The output of a template before Jinja escapes it; markup stays as it is.

    Control characters become visible, numbers are short, None is empty, and no line begins with a per cent sign.
    """
    if hasattr(value, "__html__"):
        return value
    if value is None:
        return ""
    return visible(number(value) if isinstance(value, float) else value).replace(" %", "\N{NO-BREAK SPACE}%")


def soft(name: object) -> Markup:
    """A name that can break after underscores, dots and slashes."""
    escaped = str(escape(shown(name)))  # Markup would escape <wbr>
    return Markup(re.sub(r"([_.:/\\-]+)(?=[^\W_])", r"\1<wbr>", escaped))  # nosec B704


def number(value: float) -> str:
    """At most two digits after the point: 0.126 as "0.13", 1.0 as "1"."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(share: float | None, digits: int = 0) -> str:
    """0.664 as "66 %"; a dash if it is not known."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def counted(count: int, one: str, many: str | None = None) -> str:
    """1 as "1 class", 1200 as "1,200 classes"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def short(value: object) -> str:
    """A parameter: three significant digits for a number."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
