"""Pages from templates: one file with its style and its script in it, which loads nothing from the network.

Names of classes and files are text of others, so every template escapes what it puts out. The Content-Security-Policy
lets a browser run the one script and use the one style whose hashes it names, and show pictures that are in the page:
what slips past the escaping neither runs nor calls home.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pren.foundation.files import write_bytes
from pren.foundation.version import __version__
from pren.report.words import counted, percent, short, shown, soft
from pren.runs.summary import some
from pren.trust.levels import LIKELY, SURE

HERE = "pren.report"


@dataclass(frozen=True)
class Section:
    """A part of a page: its anchor, the template that names and shows it, and the facts that the template is given."""

    id: str
    template: str
    facts: object


@dataclass(frozen=True)
class Written:
    """A report on disk: where, how large, and how many photographs are in it."""

    path: Path
    size: int
    photographs: int = 0


@cache
def environment(package: str) -> Environment:
    """The templates of a package (in its folder `templates`), which can use those of the report."""
    loader = ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, HERE))])
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "soft": soft,
        "percent": percent,
        "counted": counted,
        "short": short,
        "quoted": shlex.quote,
        "some": some,
    }
    made.globals |= {"asset": asset, "hash_of": hash_of, "version": __version__, "SURE": SURE, "LIKELY": LIKELY}
    return made


@cache
def asset(name: str) -> Markup:
    """The style or the script, which is ours."""
    return Markup((files(HERE) / "assets" / name).read_text(encoding="utf-8"))


def hash_of(content: str) -> Markup:
    """What a Content-Security-Policy names a style or a script by."""
    return Markup(f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'")


def render(template: str, facts: object, sections: Sequence[Section], package: str = HERE) -> str:
    """A whole page.

    Args:
        template: Extends `page`: it is the top of the page.
        facts: What it is given; sections know it as `page`.
        sections: The rest. Each template has its `id` and `facts`, and sets `short` (for the navigation), `title` and,
            if need be, `intro`.
        package: Whose templates these are.
    """
    known = environment(package)
    made = [
        (each.id, known.get_template(f"{each.template}.html.jinja").make_module(vars(each) | {"page": facts}))
        for each in sections
    ]
    return known.get_template(f"{template}.html.jinja").render(facts=facts, sections=made)


def write_page(path: Path, content: str, photographs: int = 0) -> Written:
    """Write a page; a `PrenError` if that fails."""
    encoded = content.encode()
    write_bytes(path, encoded)
    return Written(path, len(encoded), photographs)
