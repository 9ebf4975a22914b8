"""HTML and SVG out of parts. Whatever is not `Html` is text of others, and is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from pren.foundation.text import visible

VOID = {"br", "img", "input", "link", "meta", "wbr"}


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(content: object) -> Html:
    """Any text, so that nothing in it means anything to a browser."""
    if isinstance(content, Html):
        return content
    return Html(escape(visible(content), quote=True).replace(" %", "&nbsp;%"))  # a line never begins with the sign


def soft(name: object) -> Html:
    """A name that may be broken after its underscores, stops and slashes, where a line is short."""
    return Html(re.sub(r"([_.:/\\-]+)(?=[^\W_])", r"\1<wbr>", text(name)))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element.

    Args:
        name: Such as "p".
        *children: Elements, text, lists of both; None is left out.
        **attributes: ``class_`` stands for class, ``data_sort`` for data-sort; None and False are left out.
    """
    said = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return Html(f"<{name}{said}>") if name in VOID else Html(f"<{name}{said}>{join(children)}</{name}>")


def join(children: Iterable[object]) -> Html:
    """Elements and text one after the other."""
    return Html("".join(_flat(child) for child in children))


def _flat(child: object) -> str:
    if child is None:
        return ""
    if isinstance(child, list | tuple):
        return join(child)
    return text(child)


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{text(number(value) if isinstance(value, float) else value)}"'


def number(value: float) -> str:
    """A coordinate, as short as it can be read."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(share: float | None, digits: int = 0) -> str:
    """0.664 as "66 %"; a dash where it is not known."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def counted(count: int, one: str, many: str | None = None) -> str:
    """1 as "1 image", 1200 as "1,200 images"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
