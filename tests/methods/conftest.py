"""Fitted methods small enough to fit in a moment."""

import numpy as np
import pytest

from pren.methods.eszsl import ESZSL
from pren.methods.pren import PrEN

SMALL = {"heads": 6, "rounds": 2, "initial_batches": 10, "batches": 3, "batch_size": 8, "hidden": (8,), "lr": 3e-2}
IMAGE = (1, 8, 12)


@pytest.fixture(scope="session")
def small():
    """A fresh PrEN whose fit takes some hundredths of a second."""

    def build(**params):
        return PrEN(**{**SMALL, **params})

    return build


@pytest.fixture(
    scope="session",
    params=[
        (method, setting, form)
        for method in ("pren", "eszsl")
        for setting in ("zsl", "gzsl")
        for form in ("features", "images")
    ],
    ids="-".join,
)
def fitted(request, make_problem, small):
    """A fitted method and the problem it was fitted to: every method, setting and kind of input."""
    method, setting, form = request.param
    problem = make_problem(setting=setting, shape=(5,) if form == "features" else IMAGE)
    fresh = small(gamma=0.01, first_rounds=1) if method == "pren" else ESZSL(gamma=0.25)
    return fresh.fit(problem), problem


@pytest.fixture(scope="session")
def whole():
    """All inputs as one array."""

    def read(inputs):
        return inputs[np.arange(len(inputs))].numpy()

    return read
