"""The formulas that images are scored with, against plain loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pren.methods.formulas import (
    Affine,
    Columns,
    Cosine,
    Distances,
    Formula,
    count_below,
    on_arrays,
    run,
    squared_distances,
    unit,
)
from pren.problem.inputs import CHUNK, ArrayInputs

numbers = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=20)


@pytest.fixture(scope="module")
def drawn():
    """Images (5, 3), one of them zero, and centres (4, 3)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 3))
    x[2] = 0
    return x, rng.normal(size=(4, 3))


def length(row):
    return math.sqrt(sum(value**2 for value in row))


@given(numbers.map(sorted), numbers)
def test_a_search_counts_as_a_loop_does(known, wanted):
    for equal in (False, True):
        found = on_arrays(lambda known, x, equal=equal: count_below(known, x, equal=equal), known, wanted)
        assert found.tolist() == [sum(value < x or (equal and value == x) for value in known) for x in wanted]


def test_distances_are_those_of_a_loop(drawn):
    squares = [[sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in drawn[1]] for x in drawn[0]]
    assert np.allclose(on_arrays(squared_distances, *drawn), squares)
    assert np.allclose(on_arrays(Distances(drawn[1]), drawn[0]), -np.sqrt(squares))
    far = on_arrays(squared_distances, 1e8 + drawn[0], 1e8 + drawn[0])
    assert (far >= 0).all(), "whatever rounding does"


def test_cosines_are_those_of_a_loop(drawn):
    x, directions = drawn
    found = on_arrays(Cosine(directions, 0.5), x)
    for i, row in enumerate(x):
        for c, direction in enumerate(directions):
            expected = sum(row * direction) / length(row) / length(direction) if row.any() else 0.0
            assert np.isclose(found[i, c], expected / 0.5)
    assert np.allclose([length(row) for row in on_arrays(unit, x)], [1, 1, 0, 1, 1])


def test_products_are_those_of_a_loop(drawn):
    x, offsets = drawn[0], np.array([1.0, -2, 0, 5])
    products = [[sum(a * b for a, b in zip(row, column, strict=True)) for column in drawn[1]] for row in x]
    assert np.allclose(on_arrays(Affine(drawn[1].T), x), products)
    assert np.allclose(on_arrays(Affine(drawn[1].T, offsets), x), products + offsets)


def test_columns_are_put_in_order():
    assert Columns(np.array([2, 0]))(torch.tensor([[1, 2, 3], [4, 5, 6]])).tolist() == [[3, 1], [6, 4]]


def test_inputs_go_through_in_chunks():
    sizes, inputs = [], ArrayInputs(np.arange(2 * CHUNK + 3, dtype=np.float32)[:, None])

    def double(chunk):
        sizes.append(len(chunk))
        return 2 * chunk.double()

    assert run(double, inputs)[:, 0].tolist() == list(range(0, 2 * (2 * CHUNK + 3), 2))
    assert sizes == [CHUNK, CHUNK, 3]


def test_arrays_that_torch_does_not_take_are_copied():
    rows = np.arange(4.0)
    rows.flags.writeable = False
    assert on_arrays(lambda x: x, rows[::-1]).tolist() == [3, 2, 1, 0]


class Two(Formula):
    learns = {"a": ("n", "d"), "b": ("n",)}  # noqa: RUF012


def test_what_was_learned_is_a_copy_and_may_be_empty():
    a = np.ones((0, 2))
    made = Two(a=a, b=np.ones(3))
    assert {name: array.shape for name, array in made.arrays.items()} == {"a": (0, 2), "b": (3,)}
    assert list(made.state_dict()) == ["b"]
    made.b += 1
    assert made.arrays["b"].tolist() == [2, 2, 2]


def test_arrays_that_do_not_belong_together_are_refused():
    assert Two.check("toy", {"a": np.ones((3, 2)), "b": np.ones(3)}, d=2) == {"n": 3, "d": 2}
    for wrong, message in (
        ({"a": np.ones((3, 2))}, r"the toy holds \['a'\], not \['a', 'b'\]"),
        ({"a": np.ones((3, 1)), "b": np.ones(3)}, r"a of the toy cannot be of shape \(3, 1\)"),
        ({"a": np.ones((3, 2)), "b": np.ones(4)}, r"b of the toy cannot be of shape \(4,\)"),
        ({"a": np.ones((3, 2)), "b": np.ones((3, 1))}, r"b of the toy cannot be of shape \(3, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Two.check("toy", wrong, d=2)
