"""Tuning and comparing on photographs, through a frozen backbone."""

import json

import pytest

from pren.experiments.comparison import Plan, compare
from pren.experiments.tuning import tune
from pren.runs.config import RunConfig
from pren.vision.extraction import Extractor


@pytest.fixture
def frozen(photographs, tiny_weights, tmp_path):
    """A configuration with a frozen backbone."""

    def build(method="eszsl", geometry="whole"):
        extractor = Extractor(backbone="test_resnet", weights=str(tiny_weights), geometry=geometry)
        return RunConfig(data=str(photographs), method=method, extractor=extractor, cache=str(tmp_path / "cache"))

    return build


def test_tune_on_features(frozen, tmp_path):
    tuned = tune(frozen(), tmp_path / "out", trials=3)
    assert (tuned.trials, tuned.failed, len(tuned.folds)) == (3, 0, 2)
    assert tuned.config.extractor == frozen().extractor


def test_compare_on_features(frozen, tmp_path, here):
    rows = compare(Plan([frozen()], ["eszsl", "sae"]), tmp_path / "out")
    assert [(row.runs, row.failed) for row in rows] == [(1, 0), (1, 0)]


def test_features_of_another_extractor_are_other_cells(frozen, tmp_path, here):
    for geometry in ("whole", "timm", "timm"):
        compare(Plan([frozen(geometry=geometry)], ["eszsl"]), tmp_path / "out")
    assert len(here) == 2
    hashes = [json.loads(path.read_text())["cell"]["hashes"] for path in (tmp_path / "out" / "cells").iterdir()]
    assert hashes[0]["data"] != hashes[1]["data"]
    assert hashes[0]["split"] == hashes[1]["split"]
