"""Links lead somewhere, and pages name what there is."""

import re

import yaml

import pren
from pren.methods.registry import METHODS

from .conftest import PAGES, REPOSITORY, name

LINKS = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text("utf-8"))]


def test_links_lead_somewhere():
    assert len(LINKS) > 50
    assert [f"{name(page)}: {link}" for page, link in LINKS if not (page.parent / link).exists()] == []


def test_pages_of_the_site_link_to_pages_of_the_site():
    docs = REPOSITORY / "docs"
    assert [
        f"{name(page)}: {link}"
        for page, link in LINKS
        if page in PAGES[2:]
        and not ((page.parent / link).resolve().is_relative_to(docs) and (page.parent / link).is_file())
    ] == []


def test_every_method_is_described_and_marked_as_in_the_tables():
    page = (REPOSITORY / "docs" / "concepts" / "methods.md").read_text(encoding="utf-8")
    described = dict(re.findall(r"^\| `([\w-]+)`( †)? \|", page, flags=re.MULTILINE))
    assert described == {name: " †" if "†" in entry.title else "" for name, entry in METHODS.items()}


def test_the_reference_has_every_public_name():
    pages = (REPOSITORY / "docs" / "reference").glob("*.md")
    shown = {
        shown for page in pages for shown in re.findall(r"^::: pren\.(\w+)$", page.read_text("utf-8"), re.MULTILINE)
    }
    assert shown == set(pren.__all__) - {"__version__"}


def places(nav):
    """The pages of a navigation, at any depth."""
    if isinstance(nav, str):
        return [nav]
    return [place for part in (nav if isinstance(nav, list) else nav.values()) for place in places(part)]


def test_every_page_has_its_place_on_the_site():
    docs = REPOSITORY / "docs"
    listed = places(yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text("utf-8"))["nav"])
    pages = [page for kind in ("*.md", "*.ipynb") for page in docs.rglob(kind) if page.name != "table.md"]
    pages = [page for page in pages if page.parent.name != "reproduction"]
    assert sorted(listed) == sorted(page.relative_to(docs).as_posix() for page in pages)
