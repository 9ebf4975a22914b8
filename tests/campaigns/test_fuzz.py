"""The properties of the fuzzing, each on a few cases that are always the same."""

from collections import Counter

import pytest

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
