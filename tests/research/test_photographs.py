"""Tuning and comparing on photographs, through a frozen backbone."""

import json

import pytest
from refusals import refused

from pren.images.extraction import Extractor
from pren.images.weights import PACKAGES
from pren.research.comparison import ComparisonPlan, compare
from pren.research.parameters import Parameters
from pren.research.tuning import tune
from pren.store.config import RunConfig

pytestmark = pytest.mark.slow


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
    assert tuned.config.extractor == frozen().extractor.model_copy(update={"engine": "torch"})


def test_compare_on_features(frozen, tmp_path, here):
    rows = compare(ComparisonPlan([frozen()], ["eszsl", "sae"]), tmp_path / "out")
    assert [(row.runs, row.failed) for row in rows] == [(1, 0), (1, 0)]


def test_features_of_another_extractor_are_other_cells(frozen, tmp_path, here):
    for geometry in ("whole", "timm", "timm"):
        compare(ComparisonPlan([frozen(geometry=geometry)], ["eszsl"]), tmp_path / "out")
    assert len(here) == 2
    hashes = [json.loads(path.read_text())["cell"]["hashes"] for path in (tmp_path / "out" / "cells").iterdir()]
    assert hashes[0]["data"] != hashes[1]["data"]
    assert hashes[0]["split"] == hashes[1]["split"]


def test_photographs_alone_become_features(photographs, tmp_path, here, no_hub):
    """For methods that can take them in no other way; nothing is fetched, because one has its weights installed."""
    data = RunConfig(data=str(photographs), method="eszsl", cache=str(tmp_path / "cache"))
    assert tune(data, tmp_path / "tuned", trials=1).config.extractor.backbone == "+".join(PACKAGES)
    rows = compare(ComparisonPlan([data], ["eszsl", "sae"]), tmp_path / "compared")
    assert [(row.runs, row.failed) for row in rows] == [(1, 0), (1, 0)]


def test_methods_that_take_features_beside_one_that_trains_a_backbone_are_named(photographs, tmp_path, here):
    data = RunConfig(data=str(photographs))
    with refused("backbone-not-trained"):
        compare(ComparisonPlan([data], ["pren", "eszsl", "sae"]), tmp_path / "out")
    assert here == []
    assert not (tmp_path / "out").exists()


def test_parameters_of_the_data_are_for_every_method(photographs, tmp_path, here):
    data = RunConfig(data=str(photographs), params={"backbone": "test_resnet", "weights": "random"})
    small = {"heads": 2, "hidden": [4], "rounds": 1, "initial_batches": 1, "batches": 1, "batch_size": 4, "dim": 2}
    plan = ComparisonPlan([data], ["pren"], 1, Parameters({"pren": small}))
    (row,) = compare(plan, tmp_path / "out")
    assert (row.runs, row.failed) == (1, 0)
    (path,) = (tmp_path / "out" / "cells").iterdir()
    assert json.loads(path.read_text())["cell"]["params"]["backbone"] == "test_resnet"
