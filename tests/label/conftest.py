"""A model of features, and parts of five rows."""

import numpy as np
import pytest

from pren.label import job
from pren.label.job import Wanted, label
from pren.label.predictor import Predictor
from pren.methods.rivals.eszsl import ESZSL


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(job, "ROWS", 5)


@pytest.fixture
def run(make_problem, tmp_path):
    """The folder of a model."""
    ESZSL().fit(make_problem()).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def features():
    return np.random.default_rng(1).normal(size=(23, 5))


@pytest.fixture
def write(run, tmp_path):
    """Label some features; returns the file and what became of them."""

    def label_all(features, name="out.csv", form="csv", predictor=None, on_progress=None, **wanted):
        predictor = predictor or Predictor.load(run)
        opened = predictor.open(features)
        out = tmp_path / name
        return out, label(predictor, run, opened, out, form, Wanted(**wanted), on_progress=on_progress)

    return label_all
