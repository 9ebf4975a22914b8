"""The properties of the fuzzing, each on a few cases that are always the same."""

from collections import Counter
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import strategies as st

from campaigns.fuzz import pictures
from campaigns.fuzz.__main__ import PROPERTIES
from campaigns.fuzz.engine import BLOCK, Property, as_test, run
from campaigns.fuzz.templates import prepare
from campaigns.journal import Journal

CASES, OF_SERVERS = 25, 10


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("workshop"))


@pytest.mark.slow
@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_the_property_holds(workshop, monkeypatch, prop):
    monkeypatch.chdir(workshop.path)  # and back in the end: every case stands in a folder of its own
    outcomes = Counter()
    cases = OF_SERVERS if prop.name == "requests" else CASES
    as_test(prop, workshop, outcomes, max_examples=cases, derandomize=True)()
    assert outcomes["success"] > 0
    assert prop.name in ("tables", "metamorphic") or outcomes["PrenError"] > 0


@pytest.mark.slow
def test_pictures_are_pictures_or_explained():
    report, reached = pictures.run(150, seed=0)
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


def test_a_campaign_goes_on_where_it_was(tmp_path):
    checked = []
    prop = Property("any", 1.0, st.integers(), lambda workshop, case: checked.append(case) or "success")
    first = run(prop, None, 2 * BLOCK, seed=0, journal=Journal(tmp_path / "journal"))
    done = len(checked)
    assert sum(first.outcomes.values()) == done
    second = run(prop, None, 3 * BLOCK, seed=0, journal=Journal(tmp_path / "journal"))
    assert done < len(checked) == sum(second.outcomes.values())


def test_what_fails_is_tried_again(tmp_path):
    def check(workshop, case):
        assert case < 5
        return "success"

    prop = Property("any", 1.0, st.integers(0, 9), check)
    for _ in range(2):
        assert "AssertionError" in run(prop, None, BLOCK, seed=0, journal=Journal(tmp_path / "journal")).failure
