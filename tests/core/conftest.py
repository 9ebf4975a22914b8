"""What the tests of the core share."""

import numpy as np
import pytest
from lightning_fabric import Fabric

from pren.core.ensemble import Ensemble
from pren.core.projection import LabelEmbeddings


@pytest.fixture(scope="session")
def fabric():
    return Fabric(accelerator="cpu", devices=1)


@pytest.fixture(scope="session")
def make_ensemble():
    """Build heads over given subsets (K, L), with Gaussian label embeddings unless some are given."""

    def build(subsets, vectors=None, *, h=3, in_features=4, hidden=(8, 5), output_relu=True, seed=0):
        rng = np.random.default_rng(seed)
        subsets = np.asarray(subsets, dtype=bool)
        if vectors is None:
            vectors = rng.normal(size=(len(subsets), h, subsets.shape[1]))
        labels = LabelEmbeddings(np.asarray(vectors, dtype=np.float64), subsets)
        return Ensemble(in_features, hidden, labels, output_relu, rng)

    return build
