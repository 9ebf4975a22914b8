"""Calibration error, and precision against coverage, by plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pren.evaluation import reliability


@given(confidence=hnp.arrays(float, st.integers(1, 40), elements=st.floats(0, 1)), data=st.data())
def test_calibration_error_by_a_plain_loop(confidence, data):
    right = data.draw(hnp.arrays(bool, len(confidence)))
    total = 0.0
    for low in range(10):
        mine = [i for i, c in enumerate(confidence) if int(c * 10) == low or (low == 9 and c == 1)]
        if mine:
            total += len(mine) * abs(np.mean([confidence[i] for i in mine]) - np.mean([right[i] for i in mine]))
    assert reliability(confidence, right).ece == pytest.approx(total / len(confidence))


def test_precision_against_coverage():
    confidence = np.linspace(0.05, 0.95, 20)
    right = confidence > 0.5  # the surest half
    curve = reliability(confidence, right).curve
    assert [point.coverage for point in curve] == pytest.approx(np.arange(1, 11) / 10)
    assert [point.precision for point in curve] == pytest.approx([1] * 5 + [5 / 6, 5 / 7, 5 / 8, 5 / 9, 1 / 2])
    assert curve[0].confidence == pytest.approx(0.90, abs=0.01)


def test_labels_without_confidence_do_not_count():
    nobody = np.array([np.nan, np.nan])
    assert reliability(nobody, np.array([True, False])) is None
    assert reliability(np.array([1.0, np.nan]), np.array([True, False])).ece == 0
