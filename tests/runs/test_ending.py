"""What is said of labels at the end of a fit."""

import pytest
from pren.runs.ending import MANY, label_facts
from pren.runs.store.tables import PredictedImage


def crowded(*groups):
    """The classes that are called crowded, of groups that say how many images each class has."""
    images = [
        PredictedImage("x", name, None, None, "") for group in groups for name in group for _ in range(group[name])
    ]
    return label_facts(images, [list(group) for group in groups])["crowded"]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"a": 4, "b": 4, "c": 4 * MANY}, []),
        ({"a": 4, "b": 4, "c": 4 * MANY + 1}, ["c"]),
        ({"a": 0, "b": 0, "c": MANY}, []),  # where most have none, one is usual
        ({"a": 0, "b": 0, "c": MANY + 1}, ["c"]),
        ({"a": 1, "b": 20, "c": 20}, []),
    ],
)
def test_crowded_is_far_more_than_usual(counts, expected):
    assert crowded(counts) == expected


def test_what_is_usual_differs_between_groups():
    assert crowded({"a": 1, "b": 1, "c": 9}, {"d": 9, "e": 9, "f": 9}) == ["c"]
