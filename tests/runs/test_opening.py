"""The door through which data come in: the same for all verbs."""

import numpy as np
import pytest
from refusals import refused

from pren.images.extraction import Extractor
from pren.research.folds import open_folds
from pren.runs.opening import open_problem
from pren.store.config import RunConfig

pytestmark = pytest.mark.slow


@pytest.fixture
def frozen(photographs, tiny_weights, tmp_path):
    """A configuration with a frozen backbone."""

    def build(**fields):
        extractor = Extractor(backbone="test_resnet", weights=str(tiny_weights))
        settings = {
            "data": str(photographs),
            "method": "eszsl",
            "extractor": extractor,
            "cache": str(tmp_path / "cache"),
        }
        return RunConfig(**{**settings, **fields})

    return build


def whole(inputs):
    return inputs[np.arange(len(inputs))].numpy()


class TestProblem:
    def test_photographs_as_they_are(self, photographs):
        (photographs / "unlabelled" / "1.png").write_bytes(b"no picture")
        problem, answers = open_problem(RunConfig(data=str(photographs), method="pren"))
        assert problem.train.photographs
        assert (len(problem.train), len(problem.pool), len(answers.labels)) == (15, 5, 5)

    def test_photographs_as_features(self, frozen):
        seen = []
        problem, _ = open_problem(frozen(), on_extract=lambda *done: seen.append(done))
        assert not problem.train.photographs
        assert len(problem.train.sample_shape) == 1
        assert seen[-1] == (6, 6, 6)
        seen.clear()
        open_problem(frozen(), on_extract=lambda *done: seen.append(done))
        assert seen[-1] == (6, 0, 6), "all of them are in the cache"

    def test_the_fingerprint_tells_what_made_the_features(self, frozen, tiny_weights):
        other = {
            "the preprocessing": Extractor(backbone="test_resnet", weights=str(tiny_weights), geometry="timm"),
            "the weights": Extractor(backbone="test_resnet", weights="random"),
            "the backbone": Extractor(backbone="test_nfnet", weights="random"),
        }
        prints = [open_problem(frozen(**fields))[0].fingerprint()["data"] for fields in [{}, {}]]
        prints += [open_problem(frozen(extractor=extractor))[0].fingerprint()["data"] for extractor in other.values()]
        assert prints[0] == prints[1]
        assert len(set(prints)) == 1 + len(other)


class TestFolds:
    def test_features_are_extracted_once_and_divided(self, frozen):
        seen = []
        folds = open_folds(frozen(), on_extract=lambda *done: seen.append(done))
        assert sum(fresh == done == total for done, fresh, total in seen) == 2, "labelled images and pool, once each"
        problem, _ = open_problem(frozen())
        features = {row.tobytes() for row in whole(problem.train)}
        for fold, answers in folds:
            assert fold.extractor == problem.extractor
            used = {row.tobytes() for inputs in (fold.train, fold.pool) for row in whole(inputs)}
            assert used == features
            assert len(answers.labels) == len(fold.pool)

    def test_an_option_that_folds_answer_themselves(self):
        with refused("option-conflict"):
            open_folds(RunConfig(data="numbers", options={"fold": 1}))
