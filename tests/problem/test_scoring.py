"""From scores to labels, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.problem import ClassTable
from pren.problem.scoring import calibrated, top_classes

SEEN = np.array([True, False, True, False, False])
TABLE = ClassTable.build("abcde", np.eye(5), SEEN)


@given(st.integers(0, 6), st.integers(0, 99), st.floats(-5, 5))
def test_gamma_is_taken_off_seen_classes_in_gzsl_alone(n, seed, gamma):
    scores = np.random.default_rng(seed).normal(size=(n, 5))
    expected = [[value - gamma if SEEN[c] else value for c, value in enumerate(row)] for row in scores]
    assert np.array_equal(calibrated(scores, TABLE, "gzsl", gamma), np.reshape(expected, (n, 5)))
    assert calibrated(scores, TABLE, "zsl", gamma) is scores


@pytest.mark.parametrize("among", ["unseen", "seen", "all"])
@given(st.integers(1, 5), st.integers(1, 7), st.integers(0, 99))
def test_the_best_candidates_come_first(among, n, top, seed):
    scores = np.random.default_rng(seed).integers(0, 4, size=(n, 5)).astype(float)  # with ties
    candidates = [c for c in range(5) if among == "all" or SEEN[c] == (among == "seen")]
    classes, values = top_classes(scores, TABLE, among, top)
    for row, found, shown in zip(scores, classes, values, strict=True):
        expected = sorted(candidates, key=lambda c, row=row: -row[c])[:top]  # of equals the first of the table
        assert found.tolist() == expected
        assert shown.tolist() == [row[c] for c in expected]
