"""What the answers say of a round, against plain loops."""

import numpy as np
import pytest

from pren.core.pseudo import PseudoLabels
from pren.evaluation import round_figures
from pren.problem import UNKNOWN, Answers


@pytest.fixture
def pool():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 60)
    truth[::7] = UNKNOWN
    labels = np.where(rng.random(60) < 0.6, truth, rng.integers(0, 4, 60))
    images = rng.permutation(60)[:25]
    return Answers(truth), labels, PseudoLabels(images, rng.integers(0, 4, 25))


def test_precision_and_top1(pool):
    answers, labels, pseudo = pool
    right, by_class = [], {}
    for image, label in zip(pseudo.images, pseudo.labels, strict=True):
        if answers.labels[image] != UNKNOWN:
            right.append(answers.labels[image] == label)
    for label, truth in zip(labels, answers.labels, strict=True):
        if truth != UNKNOWN:
            by_class.setdefault(truth, []).append(label == truth)
    found = round_figures(pseudo, labels, answers, "zsl")
    assert found["precision"] == pytest.approx(np.mean(right))
    assert found["top1_before"] == pytest.approx(np.mean([np.mean(hits) for hits in by_class.values()]))


def test_what_is_not_known_is_left_out(pool):
    answers, labels, pseudo = pool
    assert round_figures(None, None, answers, "zsl") == {}
    assert round_figures(PseudoLabels.none(), None, answers, "zsl") == {}
    assert set(round_figures(pseudo, labels, answers, "gzsl")) == {"precision"}
    assert round_figures(pseudo, labels, Answers(np.full(60, UNKNOWN)), "zsl") == {}
