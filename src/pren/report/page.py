"""The frame of a report: one file, with its style and its script in it, that asks nobody for anything.

The Content-Security-Policy lets a browser run the one script and use the one style whose hashes it names, and show
pictures that are in the page. So even what slipped past the escaping could not run or call home.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pren.report.html import Html, join, soft, tag, text


@dataclass(frozen=True)
class Section:
    """A part of a report with a heading that the navigation leads to.

    Attributes:
        id: Its anchor.
        short: What the navigation calls it.
        title: The heading.
        content: What follows.
        intro: A sentence or two below the heading.
    """

    id: str
    short: str
    title: str
    content: Html
    intro: object = None


@cache
def _asset(name: str) -> str:
    return (files("pren.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def page(title: str, eyebrow: str, subtitle: str, opening: Html, sections: Sequence[Section], footer: str) -> str:
    """A whole report.

    Args:
        title: What it is about.
        eyebrow: What kind of report it is.
        subtitle: One line below the title.
        opening: What to know first.
        sections: The rest.
        footer: The last line.
    """
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; "
        "form-action 'none'"
    )
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=Html(policy)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="pren"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    ]
    links = [tag("li", tag("a", section.short, href=f"#{section.id}")) for section in sections]
    body = [
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag(
            "header",
            tag("p", eyebrow, class_="eyebrow"),
            tag("h1", title),
            tag("p", subtitle, class_="subtitle"),
            class_="top",
        ),
        tag("nav", tag("ul", links), aria_label="Sections"),
        tag("main", opening, [_section(section) for section in sections], id="content"),
        tag("footer", footer),
        Html(f"<script>{script}</script>"),
    ]
    html = tag("html", tag("head", head), tag("body", body), lang="en")
    return f"<!doctype html>\n{html}\n"


def _section(section: Section) -> Html:
    intro = None if section.intro is None else tag("p", section.intro, class_="intro")
    heading = tag("h2", section.title, id=f"{section.id}-title")
    return tag("section", heading, intro, section.content, id=section.id, aria_labelledby=f"{section.id}-title")


def table(
    header: Sequence[object],
    rows: Sequence[Sequence[object]],
    *,
    id: str,
    caption: str,
    texts: Collection[int] = (0,),
) -> Html:
    """A table that can be sorted by each column and filtered by what its rows say.

    Args:
        header: The names of the columns.
        rows: The cells; a pair (shown, key) is sorted by the key.
        id: Its anchor.
        caption: What it is, for those who do not see it.
        texts: Which columns are text, which may be broken after underscores; the others are numbers.
    """
    heads = [
        tag("th", tag("button", name, type="button"), scope="col", class_=None if place in texts else "number")
        for place, name in enumerate(header)
    ]
    body = [tag("tr", [_cell(cell, place, texts) for place, cell in enumerate(row)]) for row in rows]
    box = tag(
        "label",
        tag("span", "Filter", class_="hidden"),
        tag("input", type="search", placeholder="Filter the rows", data_filters=id, autocomplete="off"),
        tag("span", role="status"),
        class_="filter",
    )
    made = tag(
        "table", tag("caption", caption, class_="hidden"), tag("thead", tag("tr", heads)), tag("tbody", body), id=id
    )
    scroll = tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)
    return join([box if len(rows) > 5 else None, scroll])


def _cell(cell: object, place: int, texts: Collection[int]) -> Html:
    shown, key = cell if isinstance(cell, tuple) else (cell, None)
    shown = soft(shown) if place in texts else shown
    if not place:
        return tag("th", shown, scope="row", data_key=key)
    return tag("td", shown, class_=None if place in texts else "number", data_key=key)


def pairs(facts: Sequence[tuple[str, object]]) -> Html:
    """Names and values."""
    return tag("dl", [[tag("dt", name), tag("dd", value)] for name, value in facts], class_="pairs")


def code(line: str) -> Html:
    """A command to copy."""
    return tag("code", text(line), class_="command")
