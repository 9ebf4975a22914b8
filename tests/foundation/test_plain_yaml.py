"""Settings in YAML that ask for more than reading."""

import pytest
from refusals import refused

from pren.foundation.plain_yaml import MOST_LEVELS, parse_yaml


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ["[" * 900_000, "{a: " * 200_000, "- " * 400_000])
def test_deep_nesting_is_refused_at_once(text):
    with refused("yaml"):
        parse_yaml(text, "the file")


def test_some_nesting_is_read():
    depth = MOST_LEVELS - 1
    assert str(parse_yaml("[" * depth + "1" + "]" * depth, "the file")).count("[") == depth


def test_anchors_are_refused():
    with refused("yaml"):
        parse_yaml("a: &a 1\nb: *a", "the file")
