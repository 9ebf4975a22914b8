"""Confidence: read off scores as a plain loop would, learned by isotonic regression, kept without loss."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pren.trust.confidence import MOST, Confidence, Reading, Steps, threshold

RNG = np.random.default_rng(0)


@pytest.fixture
def classes(make_problem):
    return make_problem(setting="gzsl").classes


def reading(lead, seen=False):
    lead = np.asarray(lead, dtype=float)
    return Reading(np.zeros(len(lead), dtype=np.int64), lead, np.full(len(lead), seen))


class TestReading:
    @pytest.mark.parametrize("among", ["unseen", "all"])
    def test_as_a_plain_loop_reads_it(self, classes, among):
        scores, candidates = RNG.integers(0, 5, size=(40, 8)).astype(float), classes.among(among)
        found = Reading.of(scores, classes, candidates)
        for row in range(40):
            best = sorted(np.flatnonzero(candidates), key=lambda c, row=row: (-scores[row, c], c))
            assert found.labels[row] == best[0]
            assert found.lead[row] == scores[row, best[0]] - scores[row, best[1]]
            assert found.seen[row] == classes.seen[best[0]]

    def test_of_one_candidate_nobody_is_second(self, classes):
        only = np.arange(8) == 6
        assert Reading.of(RNG.random((3, 8)), classes, only).lead.tolist() == [0, 0, 0]

    def test_classes_that_are_ruled_out(self, classes):
        scores = np.full((2, 8), -np.inf)
        scores[0, 5] = 1.0
        assert np.isfinite(Reading.of(scores, classes, classes.unseen).lead).all()


class TestLearned:
    def test_shares_of_right_labels(self):
        """Two levels of lead, with known shares; a pool with more images counts no more."""
        one, other = reading([1] * 4 + [2] * 4), reading([1] * 40 + [2] * 40)
        right = [np.array([1, 0, 0, 0, 1, 1, 1, 0], dtype=bool), np.array([1, 1, 0, 0] * 10 + [1] * 40, dtype=bool)]
        learned = Confidence.learn([one, other], right)
        assert learned.of(reading([0, 1, 1.5, 2, 9])) == pytest.approx([0.375, 0.375, 0.625, 0.875, 0.875])

    def test_groups_have_their_own(self):
        learned = Confidence.learn(
            [reading([1, 2]), reading([1, 2], seen=True)], [np.array([False, False]), np.array([True, True])]
        )
        assert learned.of(reading([1.5])).tolist() == [0]
        assert learned.of(reading([1.5], seen=True)).tolist() == [MOST]

    def test_a_group_without_examples_has_none(self):
        learned = Confidence.learn([reading([1, 2])], [np.array([True, False])])
        assert np.isnan(learned.of(reading([1], seen=True))).all()

    @given(lead=hnp.arrays(float, st.integers(1, 30), elements=st.floats(0, 100)), data=st.data())
    def test_a_clearer_label_is_never_less_sure(self, lead, data):
        right = data.draw(hnp.arrays(bool, len(lead)))
        learned = Confidence.learn([reading(lead)], [right])
        confidence = learned.of(reading(np.sort(lead)))
        assert (np.diff(confidence) >= 0).all()
        assert ((confidence >= 0) & (confidence <= 1)).all()
        assert learned.of(reading(lead)).mean() == pytest.approx(right.mean(), abs=0.0011)  # at most MOST


class TestKept:
    def test_comes_back(self):
        learned = Confidence.learn([reading(RNG.random(50))], [RNG.random(50) < 0.5])
        again = Confidence.from_dict(json.loads(json.dumps(learned.to_dict())))
        asked = reading(RNG.random(20))
        assert np.array_equal(again.of(asked), learned.of(asked))

    @pytest.mark.parametrize(
        "steps",
        [
            {"leads": [0, 1], "shares": [0.5]},
            {"leads": [], "shares": []},
            {"leads": [1, 0], "shares": [0.5, 0.6]},
            {"leads": [0, float("nan")], "shares": [0.5, 0.6]},
            {"leads": [0, 1], "shares": [0.6, 0.5]},
            {"leads": [0, 1], "shares": [0.6, 1.5]},
            {"leads": [[0]], "shares": [[1]]},
            {"leads": [0]},
            {"leads": "x", "shares": [1]},
            None,
        ],
    )
    def test_what_cannot_be_is_refused(self, steps):
        with pytest.raises((ValueError, LookupError, TypeError)):
            Confidence.from_dict({"unseen": steps})

    def test_another_group_is_refused(self):
        with pytest.raises(ValueError, match="no such"):
            Confidence.from_dict({"other": {"leads": [0], "shares": [1]}})


class TestThreshold:
    @given(
        confidence=hnp.arrays(float, st.integers(0, 20), elements=st.sampled_from([0.1, 0.5, 0.9, 1.0, float("nan")])),
        precision=st.floats(0.05, 1),
    )
    def test_as_a_plain_loop_finds_it(self, confidence, precision):
        good = []
        for value in {value for value in confidence.tolist() if value == value}:
            taken = [other for other in confidence.tolist() if other >= value]
            if sum(taken) / len(taken) >= precision - 1e-9:
                good.append(value)
        assert threshold(confidence, precision) == min(good, default=float("inf"))


def test_steps_are_joined_by_straight_lines():
    made = Confidence({"unseen": Steps(leads=np.array([0.0, 2.0]), shares=np.array([0.0, 1.0]))})
    assert made.of(reading([-1, 0.5, 3])).tolist() == [0, 0.25, MOST]
