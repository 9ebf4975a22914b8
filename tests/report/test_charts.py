"""Lines, bars, matrix and map."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.report import charts
from pren.report.charts import HEIGHT, WIDTH, Series, ticks
from pren.report.image import ReportedImage
from pren.report.matrix import MOST_CELLS, draw_matrix, order_classes
from pren.report.page import HERE, environment
from pren.report.scatter import MOST_POINTS, draw_map, make_map

finite = st.floats(-1e6, 1e6)
drawn = environment(HERE).get_template("charts.html.jinja").module


def line_chart(*arguments, **options):
    return str(drawn.line_chart(charts.line_chart(*arguments, **options)))


def matrix(names, cells):
    return str(drawn.matrix(draw_matrix(names, cells), "r", "c", "inputs"))


@given(finite, st.floats(1e-3, 1e6), st.integers(2, 8))
def test_ticks_are_round_numbers_inside(low, length, most):
    found = ticks(low, low + length, most)
    slack = 1e-6 * max(abs(low), length, 1)
    assert len(found) <= most + 1
    assert all(low - slack <= value <= low + length + slack for value in found)


def test_ticks_that_count_are_whole():
    assert ticks(0, 3, 5, whole=True) == [0, 1, 2, 3]
    assert ticks(0, 1, 4) == [0, 0.25, 0.5, 0.75, 1]


@given(st.lists(finite, min_size=1, max_size=20))
def test_every_point_is_in_the_chart(values):
    made = line_chart("t", [Series("s", list(enumerate(values)))], "x")
    points = re.findall(r"([\d.-]+),([\d.-]+)", "".join(re.findall(r'points="([^"]*)"', made)))
    points += re.findall(r'cx="([\d.-]+)" cy="([\d.-]+)"', made)
    assert len(points) == len(values)
    assert all(0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT for x, y in points)


def test_several_lines_have_a_legend_and_a_description():
    made = line_chart("Loss", [Series("a", [(0, 1), (1, 2)]), Series("b", [(0, 1.0)], dashed=True)], "round")
    assert made.count("<li>") == 2
    assert 'aria-label="Loss. a: 1 first, 2 last; b: 1 first, 1 last."' in made
    assert "<li>" not in line_chart("Loss", [Series("a", [(0, 1)])], "round")


def test_a_bar_has_its_deviation_and_seeds():
    made = drawn.spread_bar(0.5, 0.1, [0.4, 0.6], 0.6)
    assert made.count("<circle") == 2
    assert "whisker" in made
    assert "whisker" not in drawn.spread_bar(0.5, None, [0.5], 0.6)


def test_classes_that_are_confused_are_neighbours():
    cells = {("a", "d"): 9.0, ("b", "c"): 8.0, ("a", "a"): 50.0}
    order = order_classes(list("abcd"), cells)
    assert abs(order.index("a") - order.index("d")) == 1
    assert abs(order.index("b") - order.index("c")) == 1


def test_a_matrix_names_its_cells():
    made = matrix(["a", "b"], {("a", "a"): 3.0, ("a", "b"): 1.0})
    assert "<title>a → b: 1 of 4 inputs</title>" in made
    assert (made.count('class="hit"'), made.count('class="miss"')) == (1, 1)


@pytest.mark.parametrize(("classes", "named"), [(60, True), (61, False)])
def test_of_many_classes_only_the_numbers_are_drawn(classes, named):
    names = [f"name{row}" for row in range(classes)]
    assert (">name7 8<" in matrix(names, {("name1", "name2"): 1.0})) is named


def test_a_matrix_is_bounded():
    names = [str(row) for row in range(200)]
    cells = {(a, b): 1.0 for a in names for b in names}
    assert matrix(names, cells).count("<title>") == MOST_CELLS


@pytest.mark.parametrize(
    ("images", "classes", "d"), [(50, 5, 8), (50, 2, 8), (3, 1, 1), (1, 1, 4), (2 * MOST_POINTS, 40, 3)]
)
def test_a_map_of_anything(images, classes, d):
    rng = np.random.default_rng(0)
    labels = [f"class {row % classes}" for row in range(images)]
    found = make_map(rng.normal(size=(images, d)), labels)
    assert found.at.shape == (min(images, MOST_POINTS), 2)
    assert found.centres.shape == (classes, 2)
    assert np.isfinite(found.at).all()
    pool = {place: ReportedImage(place, "<file>", label) for place, label in enumerate(labels)}
    made = str(drawn.map(draw_map(found, pool), "input"))
    assert "<title>&lt;file&gt;: class 0</title>" in made
    assert made.count("<circle") == min(images, MOST_POINTS)
    assert ('class="name"' in made) is (classes <= 30)


def test_a_map_shows_what_sets_classes_apart():
    """Not the direction in which images vary most, which tells nothing about their classes."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 30)
    features = rng.normal(size=(90, 3)) * [1, 1, 20] + np.eye(3)[labels] * [50, 50, 0]
    found = make_map(features, [str(label) for label in labels])
    within = np.mean([found.at[labels == row].std(axis=0) for row in range(3)], axis=0)
    assert (found.centres.std(axis=0) > 2 * within).any()
