"""Whatever is not HTML already is text."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.report.html import Html, counted, join, number, percent, soft, tag, text
from pren.report.page import Section, page, table


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


@given(st.text())
def test_no_text_becomes_an_element_or_leaves_its_attribute(anything):
    seen = parsed(tag("p", anything, title=anything))
    assert [(name, [key for key, _ in attributes]) for name, attributes in seen.elements] == [("p", ["title"])]


@given(st.text())
def test_a_name_that_may_be_broken_is_text_too(anything):
    assert {name for name, _ in parsed(soft(anything)).elements} <= {"wbr"}


def test_text_is_shown_as_it_is():
    assert parsed(tag("p", "a < b & \"c\" 'd'")).said == "a < b & \"c\" 'd'"


def test_what_nobody_sees_is_shown():
    assert text("a\u202eb\0") == "a\\u202eb\\x00"


def test_elements_and_attributes():
    made = tag("p", "a", None, [tag("b", 1), "c"], class_="x", data_key=2.0, hidden=True, title=None, id=False)
    assert made == '<p class="x" data-key="2" hidden>a<b>1</b>c</p>'
    assert tag("img", src="a") == '<img src="a">'
    assert join([Html("<br>"), "<br>"]) == "<br>&lt;br&gt;"


@pytest.mark.parametrize(("value", "shown"), [(1.0, "1"), (0.126, "0.13"), (100.0, "100"), (-0.5, "-0.5")])
def test_numbers_are_short(value, shown):
    assert number(value) == shown


def test_shares_and_counts():
    assert (percent(0.664), percent(0.664, 1), percent(None)) == ("66 %", "66.4 %", "–")
    assert (counted(1, "class", "classes"), counted(1200, "image")) == ("1 class", "1,200 images")


def test_a_page_has_its_parts_and_its_policy():
    made = page("<T>", "e", "s", Html("<p>top</p>"), [Section("id", "short", "long", Html("<p>x</p>"))], "f")
    assert made.startswith("<!doctype html>")
    assert "<title>&lt;T&gt;</title>" in made
    assert "default-src 'none'; img-src data:; style-src 'sha256-" in made
    assert "unsafe" not in made.split("<style>")[0]
    assert '<a href="#id">short</a>' in made
    assert made.count("<script>") == 1


def test_a_table_sorts_by_keys_and_tells_text_from_numbers():
    made = table(["name", "figure"], [["a_b", ("12 %", 0.12)]], id="t", caption="c")
    assert '<th scope="row">a_<wbr>b</th>' in made
    assert '<td class="number" data-key="0.12">12&nbsp;%</td>' in made
    assert "data-filters" not in made  # few rows need no filter
    assert 'data-filters="t"' in table(["name"], [["a"]] * 6, id="t", caption="c")
