"""What is said of labels at the end of a fit."""

import numpy as np
import pytest

from pren.label.predictions import Predictions, Row
from pren.label.summary import LabelSummary
from pren.problem import ClassTable


def summary(unseen, seen=None, rows=()):
    """Of so many labels of each class, and of more rows."""
    names = [*unseen, *(seen or {})]
    table = ClassTable(tuple(names), np.eye(len(names)), np.array([name not in unseen for name in names]), True)
    counts = {**unseen, **(seen or {})}
    labelled = [Row(f"{name}{number}", ((name, 1.0),)) for name in names for number in range(counts[name])]
    return LabelSummary.of(Predictions.of_rows([*labelled, *rows], table), "zsl" if seen is None else "gzsl")


@pytest.mark.parametrize(
    ("counts", "crowded", "few"),
    [
        ({"a": 40, "b": 40, "c": 70}, (), ()),
        ({"a": 40, "b": 40, "c": 71}, ("c",), ()),
        ({"a": 40, "b": 79, "c": 3, "d": 41, "e": 40}, ("b",), ("c",)),  # hedgehog and zebra
        ({"a": 0, "b": 0, "c": 30}, ("c",), ()),  # it has taken all
        ({"a": 0, "b": 40, "c": 40, "d": 40}, (), ()),  # maybe it is not there
        ({"a": 19, "b": 40, "c": 40}, (), ()),  # the mean is less than the median
        ({"a": 10, "b": 70}, (), ()),  # nothing is usual
        ({"a": 1, "b": 20, "c": 20, "d": 20}, (), ("a",)),
    ],
)
def test_classes_that_have_swallowed_others_and_those_that_were(counts, crowded, few):
    found = summary(counts)
    assert (found.crowded, found.few) == (crowded, few)
    assert found.to_check == (*found.empty, *crowded, *few)
    text = " ".join(found.lines())
    assert ("very many" in text, "very few" in text) == (bool(crowded), bool(few))


def test_numbers_of_seen_classes_say_nothing():
    found = summary({"a": 9, "b": 9, "c": 9}, {"d": 90, "e": 9, "f": 1})
    assert (found.crowded, found.few) == ((), ())


def test_what_has_no_label_is_counted_apart():
    rows = [Row("x", error="cannot be read"), Row("y", familiarity=0.001), Row("z", (("a", 1.0),), 0.99, 0.0)]
    found = summary({"a": 1, "b": 0}, rows=rows)
    assert (found.inputs, found.unreadable, found.unlabelled) == (4, 1, 1)
    assert (found.per_class, found.empty, found.to_check) == ({"a": 2, "b": 0}, ("b",), ("b",))
    assert found.levels == (1, 0, 0)
    assert found.strange == ("z", "y")  # the strangest first
