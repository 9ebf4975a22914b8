"""How sure names are: of a method that chooses them, from memory and from a folder."""

import math

import numpy as np
import pytest

import pren
from pren.label.names import group_names
from pren.label.predictions import Predictions
from pren.problem import UNKNOWN, ClassTable

NAMES = ("zebra", "koala", "=dingo", "horse")
TABLE = ClassTable.build(NAMES, np.eye(4), np.arange(4) == 3)


class Voted:
    """A method whose heads have voted."""

    def __init__(self, shares):
        self.shares = shares

    def name_shares(self):
        return self.shares


def labels(best, scores, confidence=0.5, familiarity=0.5):
    best, scores, known = np.array(best)[:, None], np.array(scores, dtype=float)[:, None], np.ones(len(best))
    inputs = tuple(f"{place}.jpg" for place in range(len(best)))
    return Predictions(inputs, best, scores, confidence * known, familiarity * known, ("",) * len(best), TABLE)


SHARES = np.zeros((4, 4))
SHARES[:3, :3] = [[0.6, 0.4, 0], [0, 1, 0], [0.3, 0.3, 0.4]]


def test_the_least_certain_comes_first_with_typical_inputs():
    found = group_names(labels([0, 1, 0, 0, 1, 3], [-3, -1, -1, -2, -5, 0]), Voted(SHARES))
    assert [(group.name, group.count, group.certainty, group.doubtful) for group in found] == [
        ("zebra", 3, 0.6, True),
        ("koala", 2, 1.0, False),
    ]
    assert found[0].others == (("koala", 0.4),)
    assert found[0].look_at == ("2.jpg", "3.jpg", "0.jpg")
    assert found[1].others == ()


def test_strange_inputs_and_groups_with_a_given_label_are_not_asked_about():
    known = group_names(labels([0, 0, 1, 1], [1, 2, 3, 4], [0.9, 0.9, 1.0, 0.2], [0.5, 0.001, 1, 1]), Voted(SHARES))
    assert [group.look_at for group in known] == [("0.jpg",), ()]


def test_inputs_without_a_label_are_in_no_group():
    found = group_names(labels([UNKNOWN, 2, UNKNOWN], [np.nan, 1, np.nan]), Voted(SHARES))
    assert [(group.name, group.count) for group in found] == [("=dingo", 1)]
    assert found[0].others == (("zebra", 0.3), ("koala", 0.3))


def test_a_method_that_chooses_no_names_has_none():
    assert group_names(labels([0], [1]), Voted(None)) == ()


@pytest.mark.parametrize("rehearsals", [0, 2])
def test_a_folder_says_the_same(tmp_path, arrays, rehearsals):
    np.savez(tmp_path / "data.npz", **arrays())
    result = pren.fit(tmp_path / "data.npz", tmp_path / "run", rehearsals=rehearsals, report=False)
    assert {group.name for group in result.names} == set(result.labels.labels)
    assert all(math.isfinite(group.certainty) for group in result.names)
    assert pren.load_result(tmp_path / "run").names == result.names
    assert result.to_dict()["names"][0]["look_at"] == list(result.names[0].look_at)
