"""Data and configurations small enough to fit in a moment."""

import numpy as np
import pytest

from pren.store.config import RunConfig

SMALL = {"rounds": 1, "initial_batches": 4, "batches": 2, "batch_size": 8, "hidden": [8], "lr": 3e-2}


@pytest.fixture
def data(arrays, tmp_path):
    """Write a data file and return its path; keywords replace arrays, None leaves them out."""

    def write(setting="zsl", file="data.npz", **replaced):
        content = {**arrays(setting=setting), **replaced}
        np.savez(tmp_path / file, **{key: value for key, value in content.items() if value is not None})
        return str(tmp_path / file)

    return write


@pytest.fixture
def config(data):
    """The configuration of a method on such a file."""

    def build(method="eszsl", setting="zsl", params=None, **replaced):
        small = {key: value for key, value in SMALL.items() if method != "eszsl"}
        return RunConfig(
            data=data(setting, **replaced), setting=setting, method=method, params={**small, **(params or {})}
        )

    return build
