"""Whatever a template puts out is text, unless it is markup of ours."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader, UndefinedError
from markupsafe import Markup

import pren
from pren.report.page import HERE, Section, environment, render
from pren.report.words import counted, number, percent, short, shown, soft

TEMPLATES = sorted(Path(pren.__file__).parent.glob("*/templates/*"))
PAGE = """{% extends "page.html.jinja" %}{% block title %}{{ facts }}{% endblock %}{% block eyebrow %}e{% endblock %}
{% block subtitle %}s{% endblock %}{% block origin %}o{% endblock %}{% block opening %}<p>top</p>{% endblock %}"""
TABLE = """{% from "parts.html.jinja" import number, table %}
{% call table("t", "c", [("name", true), ("figure", false)], facts|length) %}{% for name, value in facts %}
<tr><th scope="row">{{ name|soft }}</th>{{ number(value|percent, value) }}</tr>{% endfor %}{% endcall %}"""


class Seen(HTMLParser):
    """What a parser finds: elements with their attributes, and text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements, self.said = [], ""

    def handle_starttag(self, name, attributes):
        self.elements.append((name, attributes))

    def handle_data(self, data):
        self.said += data


def parsed(html):
    seen = Seen()
    seen.feed(html)
    seen.close()
    return seen


def made(source, **facts):
    return environment(HERE).from_string(source).render(**facts)


@given(st.text())
def test_no_text_becomes_an_element_or_leaves_its_attribute(anything):
    seen = parsed(made('<p title="{{ it }}">{{ it }}</p>', it=anything))
    assert [(name, [key for key, _ in attributes]) for name, attributes in seen.elements] == [("p", ["title"])]


@given(st.text())
def test_a_name_that_can_break_is_text_too(anything):
    assert {name for name, _ in parsed(soft(anything)).elements} <= {"wbr"}


def test_a_name_breaks_after_its_stops():
    assert soft("a_b<c>.d") == "a_<wbr>b&lt;c&gt;.<wbr>d"


def test_text_is_shown_as_it_is():
    assert parsed(made("<p>{{ it }}</p>", it="a < b & \"c\" 'd'")).said == "a < b & \"c\" 'd'"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\u202eb\0", "a\\u202eb\\x00"),
        (None, ""),
        (0.126, "0.13"),
        (3, "3"),
        ("5 %", "5\xa0%"),
        (Markup("<b>"), "<b>"),
    ],
)
def test_what_a_template_puts_out(value, text):
    assert shown(value) == text
    assert made("{{ it }}", it=value) == text


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_turns_the_escaping_off(path):
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|autoescape|Markup", source)
    assert path.name.endswith(".html.jinja")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_value_in_an_attribute_is_quoted(path):
    """Escaping keeps text inside of quotes, and only there."""
    assert not re.search(
        r"=\s*\{\{", re.sub(r"\{%.*?%\}", "", path.read_text(encoding="utf-8")).replace("={{ value|short", "")
    )


def test_a_fact_that_is_not_there_is_an_error():
    with pytest.raises(UndefinedError, match="has no attribute"):
        made("{{ it.nothing }}", it=object())


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (0.126, "0.13"), (100.0, "100"), (-0.5, "-0.5")])
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_shares_counts_and_parameters():
    assert (percent(0.664), percent(0.664, 1), percent(None)) == ("66 %", "66.4 %", "–")
    assert (counted(1, "class", "classes"), counted(1200, "input")) == ("1 class", "1,200 inputs")
    assert (short(0.12345), short("l2"), short(3)) == ("0.123", "l2", "3")


@pytest.fixture
def extra(monkeypatch):
    """Templates of a test beside those of the report."""
    known = environment(HERE)
    own = {"p.html.jinja": PAGE, "x.html.jinja": "{% set short = 'S' %}{% set title = 'L' %}<p>{{ facts }}</p>"}
    monkeypatch.setattr(known.loader, "loaders", [DictLoader(own), *known.loader.loaders])


def test_a_page_has_its_parts_and_its_policy(extra):
    page = render("p", "<T>", [Section("id", "x", "<x>")])
    assert page.startswith("<!doctype html>")
    assert "<title>&lt;T&gt;</title>" in page
    assert "<h1>&lt;T&gt;</h1>" in page
    assert "default-src 'none'; img-src data:; style-src 'sha256-" in page
    assert "unsafe" not in page.split("<style>")[0]
    assert '<a href="#id">S</a>' in page
    assert '<h2 id="id-title">L</h2>' in page
    assert "<p>&lt;x&gt;</p>" in page
    assert page.count("<script>") == 1


def test_a_table_sorts_by_keys_and_tells_text_from_numbers():
    page = made(TABLE, facts=[("a_b", 0.1234)])
    assert '<th scope="col"><button type="button">name</button></th>' in page
    assert '<th scope="col" class="number"><button type="button">figure</button></th>' in page
    assert '<th scope="row">a_<wbr>b</th>' in page
    assert '<td class="number" data-key="0.1234">12\xa0%</td>' in page
    assert 'data-key="-1">–<' in made(TABLE, facts=[("a", None)])
    assert "data-filters" not in page  # few rows need no filter
    assert 'data-filters="t"' in made(TABLE, facts=[("a", 0.5)] * 6)
