"""What is said of labels at the end of a fit."""

import numpy as np
import pytest

from pren.label.predictions import Predictions, Row
from pren.label.summary import MANY, LabelSummary
from pren.problem import ClassTable


def summary(unseen, seen=None, rows=()):
    """Of so many labels of each class, and of more rows."""
    names = [*unseen, *(seen or {})]
    table = ClassTable(tuple(names), np.eye(len(names)), np.array([name not in unseen for name in names]), True)
    counts = {**unseen, **(seen or {})}
    labelled = [Row(f"{name}{number}", ((name, 1.0),)) for name in names for number in range(counts[name])]
    return LabelSummary.of(Predictions.of_rows([*labelled, *rows], table), "zsl" if seen is None else "gzsl")


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"a": 4, "b": 4, "c": 4 * MANY}, ()),
        ({"a": 4, "b": 4, "c": 4 * MANY + 1}, ("c",)),
        ({"a": 0, "b": 0, "c": MANY}, ()),  # where most have none, one is usual
        ({"a": 0, "b": 0, "c": MANY + 1}, ("c",)),
        ({"a": 1, "b": 20, "c": 20}, ()),
    ],
)
def test_crowded_is_far_more_than_usual(counts, expected):
    assert summary(counts).crowded == expected


def test_what_is_usual_differs_between_groups():
    assert summary({"a": 1, "b": 1, "c": 9}, {"d": 9, "e": 9, "f": 9}).crowded == ("c",)


def test_what_has_no_label_is_counted_apart():
    rows = [Row("x", error="cannot be read"), Row("y", familiarity=0.001), Row("z", (("a", 1.0),), 0.99, 0.0)]
    found = summary({"a": 1, "b": 0}, rows=rows)
    assert (found.inputs, found.unreadable, found.unlabelled) == (4, 1, 1)
    assert (found.per_class, found.empty, found.to_check) == ({"a": 2, "b": 0}, ("b",), ("b",))
    assert found.levels == (1, 0, 0)
    assert found.strange == ("z", "y")  # the strangest first
