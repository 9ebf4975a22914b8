"""Signatures from words, by a text encoder that somebody registers."""

import json

import numpy as np
import pytest
import torch
from refusals import refused

from pren.data.describe import ENCODERS, Signatures, encode, register_encoder


@pytest.fixture
def register(monkeypatch):
    """Register encoders that go away with the test."""
    monkeypatch.setattr(ENCODERS, "_entries", dict(ENCODERS))
    return register_encoder


def test_every_text_becomes_a_row(register):
    @register("lengths")
    def lengths(texts):
        return torch.tensor([[len(text), 1] for text in texts])

    made = encode("lengths", ["horse", "seal"], [["hooves"], ["it swims", "much"]], file="words.csv")
    assert made.names == ("horse", "seal")
    assert made.values.tolist() == [[6.0, 1.0], [6.0, 1.0]]  # the mean of 8 and 4
    assert made.texts == (("hooves",), ("it swims", "much"))
    assert made.values.dtype == np.float64
    assert made.attributes is None
    assert made.source == {"kind": "text", "encoder": "lengths", "file": "words.csv"}
    assert lengths(["a"]).tolist() == [[1, 1]]  # what is registered stays what it was


@pytest.mark.parametrize("result", [np.ones(2), np.ones((3, 2)), np.array([["a"], ["b"]])])
def test_an_encoder_that_gives_something_else_is_named(register, result):
    register("odd")(lambda texts: result)
    with refused("encoder-output"):
        encode("odd", ["a", "b"], [["x"], ["y"]])


def test_an_unknown_encoder(register):
    with refused("unknown-name"):
        encode("lengths", ["a"], [["x"]])
    register("lengths")(len)
    with refused("unknown-name"):
        encode("length", ["a"], [["x"]])


class TestSignatures:
    made = Signatures(("a", "b", "c"), np.arange(6.0).reshape(3, 2), {"kind": "attributes"}, ("x", "y"))

    def test_some_of_them_in_another_order(self):
        some = self.made.take([2, 0])
        assert some.names == ("c", "a")
        assert some.values.tolist() == [[4, 5], [0, 1]]
        assert (some.source, some.attributes) == (self.made.source, self.made.attributes)

    def test_what_is_recorded_is_json_and_tells_values_and_names_apart(self):
        record = self.made.record()
        assert json.loads(json.dumps(record)) == record
        assert (record["kind"], record["width"]) == ("attributes", 2)
        others = [
            self.made.take([1, 0, 2]),
            Signatures(("a", "b", "d"), self.made.values, {}),
            Signatures(self.made.names, self.made.values + 1, {}),
        ]
        assert record["hash"] not in {other.record()["hash"] for other in others}
        assert record["hash"] == self.made.take([0, 1, 2]).record()["hash"]
