"""Pages from templates: one file with style and script, which loads nothing from the network.

Names of classes and files are hostile text, so templates escape all output. The Content-Security-Policy allows only the
script and the style with the right hashes and photographs in the page: injected code neither runs nor loads anything.
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
from pren.label.summary import some
from pren.report.words import counted, percent, short, shown, soft
from pren.trust.confidence import LIKELY, SURE

HERE = "pren.report"


@dataclass(frozen=True)
class Section:
    """A section of a page: its anchor, its template, and the facts for the template."""

    id: str
    template: str
    facts: object


@dataclass(frozen=True)
class Written:
    """A report on disk: its path, its size in bytes, and its number of photographs."""

    path: Path
    size: int
    photographs: int = 0


@cache
def environment(package: str) -> Environment:
    """The templates of a package (its folder `templates`) and those of the report."""
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
    """The style or the script, which needs no escaping."""
    return Markup((files(HERE) / "assets" / name).read_text(encoding="utf-8"))  # nosec B704


def hash_of(content: str) -> Markup:
    """The hash of a style or a script in a Content-Security-Policy."""
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return Markup(f"'sha256-{digest}'")  # nosec B704


def render(template: str, facts: object, sections: Sequence[Section], package: str = HERE) -> str:
    """A whole page.

    Args:
        template: The top of the page; it extends `page`.
        facts: Its facts; sections know them as `page`.
        sections: The rest. Their templates set `short` (for the navigation), `title` and maybe `intro`.
        package: The package with the templates.
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
