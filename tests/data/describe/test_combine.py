"""Several sources of signatures side by side."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pren.data.describe import Signatures, combine, reweighted, scaled_anew, source_names

NAMES = tuple("abcdef")
SEEN = np.array([True, False, True, True, False, True])


def source(kind, width, seed, scale=1.0, **more):
    values = np.random.default_rng(seed).normal(3.0, scale, size=(len(NAMES), width))
    return Signatures(NAMES, values, {"kind": kind}, **more)


ATTRIBUTES, SENTENCES = source("attributes", 3, 0), source("sentences", 5, 1, scale=40.0)


def loop(sources, seen, weights):
    """The same, number by number."""
    rows = [[] for _ in NAMES]
    for table, weight in zip(sources, weights, strict=True):
        members = [row for row in range(len(NAMES)) if seen[row]]
        width = len(table.values[0])
        means = [sum(table.values[row][column] for row in members) / len(members) for column in range(width)]
        squares = sum((table.values[row][c] - means[c]) ** 2 for row in members for c in range(width))
        length = (squares / len(members)) ** 0.5
        for row in range(len(NAMES)):
            rows[row] += [weight * (table.values[row][c] - means[c]) / length for c in range(width)]
    return rows


@pytest.mark.parametrize("weights", [None, [1.0, 0.5], [2, 3]])
def test_as_a_loop_does_it(weights):
    both = combine([ATTRIBUTES, SENTENCES], SEEN, weights)
    np.testing.assert_allclose(both.values, loop([ATTRIBUTES, SENTENCES], SEEN, weights or [1, 1]), rtol=1e-12)
    assert both.names == NAMES


def test_other_weights_later_are_those_from_the_start():
    both = combine([ATTRIBUTES, SENTENCES], SEEN, [1, 0.5])
    other = combine([ATTRIBUTES, SENTENCES], SEEN, [0.3, 4])
    np.testing.assert_allclose(reweighted(both.values, both.record(), [0.3, 4]), other.values, rtol=1e-12)
    for wrong in ([1], [1, 0], [1, np.nan]):
        with refused("signatures-weights"):
            reweighted(both.values, both.record(), wrong)


def test_what_is_recorded():
    both = combine([ATTRIBUTES, SENTENCES], SEEN, [1, 0.5])
    assert both.source == {
        "kind": "combined", "sources": [ATTRIBUTES.record(), SENTENCES.record()], "weights": [1.0, 0.5],
    }  # fmt: skip
    assert both.record()["width"] == 8
    assert json.loads(json.dumps(both.record())) == both.record()
    assert both.record()["hash"] != combine([ATTRIBUTES, SENTENCES], SEEN).record()["hash"]
    assert both.attributes is None


def test_columns_keep_their_names_if_all_have_some():
    one, other = source("one", 2, 0, attributes=("x", "y")), source("other", 1, 1, attributes=("z",))
    assert combine([one, other], SEEN).attributes == ("x", "y", "z")
    assert combine([one, SENTENCES], SEEN).attributes is None


def test_one_source_stays_as_it_is():
    assert combine([SENTENCES], SEEN) is SENTENCES


@given(st.floats(1e-6, 1e6), st.floats(-100, 100))
def test_neither_unit_nor_origin_of_a_source_matters(unit, origin):
    moved = Signatures(NAMES, SENTENCES.values * unit + origin, SENTENCES.source)
    expected = combine([ATTRIBUTES, SENTENCES], SEEN).values
    # Beside a large origin little is left of small numbers.
    np.testing.assert_allclose(combine([ATTRIBUTES, moved], SEEN).values, expected, atol=1e-6)


def test_unseen_classes_do_not_move_the_seen_ones():
    values = SENTENCES.values.copy()
    values[~SEEN] *= 7
    before, after = (
        combine([ATTRIBUTES, s], SEEN) for s in (SENTENCES, Signatures(NAMES, values, {"kind": "sentences"}))
    )
    np.testing.assert_array_equal(before.values[SEEN], after.values[SEEN])
    assert (before.values[~SEEN] != after.values[~SEEN]).any()


def test_scaled_anew_is_as_scaled_at_once():
    rows, seen = np.flatnonzero(SEEN), np.array([True, False, True, True])  # one of the seen classes plays the unseen
    both = combine([ATTRIBUTES, SENTENCES], SEEN, [1, 3])
    expected = combine([ATTRIBUTES.take(rows), SENTENCES.take(rows)], seen, [1, 3]).values
    np.testing.assert_allclose(scaled_anew(both.values[rows], both.record(), seen), expected, rtol=1e-12)
    assert scaled_anew(SENTENCES.values, SENTENCES.record(), SEEN) is SENTENCES.values


def changed(place, value):
    values = SENTENCES.values.copy()
    values[place] = value
    return Signatures(NAMES, values, SENTENCES.source)


@pytest.mark.parametrize(
    ("other", "weights", "refusal"),
    [
        (SENTENCES.take([1, 0, 2, 3, 4, 5]), None, "signatures-order"),
        (changed((3, 1), np.nan), None, "signature-value d"),
        (changed((4, 1), np.inf), None, "signature-value e"),
        (changed(1, 0.0), None, "signature-value b"),
        (changed(SEEN, 0.1), None, "signatures-constant"),
        (changed((3, 1), 1e300), None, "signatures-constant"),
        (SENTENCES, [1.0], "signatures-weights 2"),
        (SENTENCES, [1.0, 0.0], "signatures-weights"),
        (SENTENCES, [1.0, np.nan], "signatures-weights"),
    ],
)
def test_what_cannot_be_combined(other, weights, refusal):
    with refused(refusal):
        combine([ATTRIBUTES, other], SEEN, weights)


def test_one_source_has_no_weight():
    with refused("signatures-weights"):
        combine([SENTENCES], SEEN, [2])


def test_names_of_sources():
    assert source_names("attributes") == ["attributes"]
    assert source_names(" sentences , attributes") == ["sentences", "attributes"]
    for wrong in ("", ",", "a,", "a,a"):
        with refused("signatures-form"):
            source_names(wrong)
