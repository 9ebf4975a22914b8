"""How sure names are: of a method that chooses them, from memory and from a folder."""

import math

import numpy as np
import pytest

import pren
from pren.label.names import GroupName, group_names, names_to_check
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
    assert [(group.name, group.count, group.doubtful) for group in found] == [("zebra", 3, True), ("koala", 2, False)]
    assert found[0].certainty < 0.6  # less than the agreement
    assert 0.9 < found[1].certainty < 1
    assert (found[0].runner_up, found[1].runner_up) == ("koala", "")
    assert found[0].others == (("koala", 0.4),)
    assert found[0].look_at == ("2.jpg", "3.jpg", "0.jpg")
    assert found[1].others == ()


def test_strange_inputs_and_groups_with_a_given_label_are_not_asked_about():
    known = group_names(labels([0, 0, 1, 1], [1, 2, 3, 4], [0.9, 0.9, 1.0, 0.2], [0.5, 0.001, 1, 1]), Voted(SHARES))
    assert [group.look_at for group in known] == [("0.jpg",), ()]


def test_a_rehearsed_certainty_is_taken_as_it_is():
    class Rehearsed:
        names = np.array([0.3, 0.74, 0.75, 1.0])

    found = group_names(labels([0, 1, 2], [1, 2, 3]), Voted(SHARES), Rehearsed())
    assert [(group.name, group.certainty, group.doubtful) for group in found] == [
        ("zebra", 0.3, True),
        ("koala", 0.74, True),
        ("=dingo", 0.75, False),
    ]


def test_a_person_is_asked_which_class_it_is_and_where_to_look():
    doubtful = [GroupName(f"c{n}", 40, 0.5, (("koala", 0.4),), ("0012.jpg", "2.jpg"), True) for n in range(12)]
    alone, sure = GroupName("zebra", 1, 0.6, (), (), True), GroupName("horse", 9, 0.9, (), ("1.jpg",), False)
    assert names_to_check([sure]) == []
    first, *questions, last = names_to_check([*doubtful, alone, sure])
    assert "13 names" in first
    assert "481 photographs" in first
    assert questions[0] == "  c0 or koala? 40 photographs hang on it: look at 0012.jpg (50 % sure)."
    assert len(questions) == 10
    assert "3 more" in last
    assert names_to_check([alone], "input")[1:] == ["  Is it zebra? 1 input hangs on it (60 % sure)."]


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
