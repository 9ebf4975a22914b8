"""Scored pools, small and clear."""

import numpy as np
import pytest

from pren.methods.refinement import ScoredPool
from pren.problem import ClassTable


@pytest.fixture(scope="session")
def scored():
    """Build a pool whose first class is the only seen one, and by default no candidate."""

    def build(scores, features, candidates=None, labelled=None, labels=(), balance=0.0):
        L, d = scores.shape[1], features.shape[1]
        classes = ClassTable.build([f"c{i}" for i in range(L)], np.eye(L), np.arange(L) < 1)
        candidates = np.arange(L) >= 1 if candidates is None else candidates
        labelled = np.empty((0, d)) if labelled is None else labelled
        return ScoredPool(
            scores, features, classes, candidates, labelled, np.array(labels, dtype=np.int64), balance=balance
        )

    return build


@pytest.fixture(scope="session")
def clusters(scored):
    """Build images around 4 corners, and scores that are right for many of them."""

    def build(sizes, doubt=0.9, seed=0, **options):
        rng = np.random.default_rng(seed)
        labels = rng.permutation(np.repeat(np.arange(1, 5), sizes))
        corners = 3 * np.eye(5)[:, 1:]
        features = corners[labels] + 0.3 * rng.normal(size=(len(labels), 4))
        scores = 1.0 * (labels[:, None] == np.arange(5)) + doubt * rng.normal(size=(len(labels), 5))
        return scored(scores, features, **options), labels

    return build


@pytest.fixture(scope="session")
def right():
    """The share of right labels, class by class."""

    def measure(scores, labels):
        return np.mean([(scores[labels == c, 1:].argmax(axis=1) + 1 == c).mean() for c in range(1, 5)])

    return measure
