"""CLIP: cosines, and what it needs for them."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused, warnings_by

from pren.methods.rivals.clip import CLIP


def test_scores_are_cosines(make_problem, whole):
    problem = make_problem(m=5)
    scores = CLIP(temperature=0.5).fit(problem).scores(problem.pool)
    for x, row in zip(whole(problem.pool).astype(float), scores, strict=True):
        for a, score in zip(problem.classes.signatures, row, strict=True):
            assert score == pytest.approx(x @ a / np.sqrt((x @ x) * (a @ a)) / 0.5)


@pytest.mark.parametrize("features", ["whitened", "standard"])
def test_preparation_is_for_the_refinement_alone(make_problem, features):
    problem = make_problem(m=5)
    plain = CLIP().fit(problem)
    np.testing.assert_array_equal(CLIP(features=features).fit(problem).scores(problem.pool), plain.scores(problem.pool))
    one, two = (
        CLIP(refinement="soft-kmeans", features=how).fit(problem).scores(problem.pool) for how in ("raw", features)
    )
    assert not np.allclose(one, two)


def test_a_class_that_comes_later(make_problem):
    problem = make_problem(m=5)
    model, new = CLIP().fit(problem), np.arange(1.0, 6)
    grown = model.with_class("later", new)
    np.testing.assert_allclose(grown.scores(problem.pool)[:, :-1], model.scores(problem.pool))
    features = np.stack([new, -new]).astype(np.float32)
    np.testing.assert_allclose(grown.scores(features)[:, -1], [100, -100], rtol=1e-6)


class TestOneSpace:
    def test_unequal_lengths_are_refused(self, make_problem):
        with refused("clip-mismatch"):
            CLIP().fit(make_problem())
        asked = {"asked": {"backbone": "clip:RN50/openai"}}
        with refused("clip-mismatch"):
            CLIP().fit(replace(make_problem(), extractor=asked))

    @pytest.mark.parametrize(
        ("backbone", "encoder", "warned"),
        [
            ("clip:tiny", "clip:tiny@file", False),
            ("clip:RN50/openai", "clip:RN50/openai", False),
            (None, None, False),
            ("clip:RN50/openai", "clip:RN50/yfcc15m", True),
            ("resnet34", None, True),
            (None, "minilm", True),
        ],
    )
    def test_two_models_are_warned_of(self, make_problem, caplog, backbone, encoder, warned):
        extractor = None if backbone is None else {"asked": {"backbone": backbone}}
        source = {} if encoder is None else {"signatures": {"kind": "text", "encoder": encoder}}
        CLIP().fit(replace(make_problem(m=5), extractor=extractor, source=source))
        messages = warnings_by("pren.methods.rivals.clip", caplog)
        assert len(messages) == int(warned)
        assert all(name in message for message in messages for name in (backbone, encoder) if name)
