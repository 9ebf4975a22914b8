"""What the tests of trust share."""

import pytest

from pren.methods.base import Method


@pytest.fixture(autouse=True)
def usual_rehearsals(monkeypatch):
    """As many as users have, instead of the few of other tests."""
    monkeypatch.setattr(Method, "rehearsals", 10)
