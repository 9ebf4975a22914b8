"""The properties of the fuzzing, each on a few cases that are always the same."""

from collections import Counter
from unittest.mock import Mock

import numpy as np
import pytest

from campaigns.fuzz import pictures
from campaigns.fuzz.__main__ import PROPERTIES
from campaigns.fuzz.engine import as_test
from campaigns.fuzz.templates import prepare

CASES = 250


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("workshop"))


@pytest.mark.slow
@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_the_property_holds(workshop, monkeypatch, prop):
    monkeypatch.chdir(workshop.path)  # and back in the end: every case stands in a folder of its own
    outcomes = Counter()
    as_test(prop, workshop, outcomes, max_examples=round(CASES * prop.share), derandomize=True)()
    assert outcomes["success"] > 0
    assert prop.name == "tables" or outcomes["PrenError"] > 0


@pytest.mark.slow
def test_pictures_are_pictures_or_explained():
    report, reached = pictures.run(300, seed=0)
    assert report.failure == ""
    assert report.outcomes["success"] > 0
    assert report.outcomes["PrenError"] > 0
    _, whole = pictures.run(0, seed=0)
    assert len(reached) > len(whole)  # spoiled ones go where whole ones do not


def test_a_picture_that_breaks_is_reported(monkeypatch):
    monkeypatch.setattr(
        pictures, "decode", Mock(side_effect=[*[np.zeros((3, 20, 30), np.uint8)] * 99, ZeroDivisionError])
    )
    monkeypatch.setattr(pictures, "WANTED", (pictures.WANTED[0],) * 2)
    report, _ = pictures.run(300, seed=0)
    assert "ZeroDivisionError" in report.failure
    assert "Picture(bytes.fromhex(" in report.failure
