"""Mutated shards and lists: a few cases that are always the same."""

from collections import Counter

import pytest

from campaigns.fuzz import shards
from campaigns.fuzz.engine import Property, as_test
from campaigns.fuzz.templates import prepare


@pytest.mark.slow
def test_shards_are_labelled_or_refused(tmp_path, monkeypatch):
    workshop = prepare(tmp_path)
    monkeypatch.chdir(workshop.path)
    outcomes = Counter()
    prop = Property("shards", 0.1, shards.CASES, shards.check)
    as_test(prop, workshop, outcomes, max_examples=40, derandomize=True)()
    assert outcomes["success"] > 0
    assert outcomes["PrenError"] > 0
