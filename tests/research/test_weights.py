"""Weights of several sources of signatures, chosen with the parameters."""

import math

import numpy as np
import pytest
import yaml
from refusals import refused

from pren.data import DATASETS, load, register_dataset
from pren.data.describe import Signatures, combine, source_names
from pren.problem import Answers, ClassTable, Problem
from pren.research.comparison import ComparisonPlan, compare
from pren.research.folds import open_folds
from pren.research.parameters import Parameters
from pren.research.tuning import search_space, tune
from pren.research.weights import weight_space, weighted, weights_of
from pren.store.config import RunConfig, read_yaml

FIXED = {"feature_reg": 1.0, "signature_reg": 1.0, "features": "raw", "refinement": "none", "balance": 0.0}
RATIO = "weight of noise"


@pytest.fixture(autouse=True)
def two_sources(monkeypatch):
    """A data set with one source of signatures that says what its classes look like, and one that says nothing."""
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS))

    @register_dataset("described", "two sources")
    def described(
        setting: str = "zsl", signatures: str = "shape", signature_weights: list[float] | None = None
    ) -> tuple[Problem, Answers]:
        rng = np.random.default_rng(0)
        names, seen = tuple(f"c{row:02}" for row in range(24)), np.arange(24) < 18
        tables = {"shape": rng.normal(size=(24, 5)), "noise": rng.normal(size=(24, 40))}
        made = [Signatures(names, tables[name], {"kind": name}) for name in source_names(signatures)]
        both = combine(made, seen, signature_weights)
        labels = np.repeat(np.arange(24), 6)
        features = (tables["shape"] @ rng.normal(size=(5, 12)))[labels] + 1.5 * rng.normal(size=(len(labels), 12))
        train = seen[labels]
        table = ClassTable.build(names, both.values, seen, normalise=False)
        arrays = Problem.from_arrays(features[train], labels[train], both.values, features[~train], names)
        source = {"signatures": both.record()}
        return Problem(arrays.train, arrays.labels, arrays.pool, table, setting, source=source), Answers(labels[~train])


def config(**options):
    return RunConfig(data="described", method="eszsl", params=FIXED, options={"signatures": "shape,noise", **options})


def test_what_is_drawn():
    assert list(search_space(config())) == [RATIO]
    assert weight_space(config(signatures="shape")) == {}
    assert weight_space(config(signature_weights=[1, 2])) == {}
    assert list(weight_space(config(signatures="a,b,c"))) == ["weight of b", "weight of c"]


@pytest.mark.parametrize("ratio", [0.03, 1.0, 7.0])
def test_ratios_become_weights_of_the_same_length_as_a_whole(ratio):
    one, other = weights_of(config(), {RATIO: ratio})
    assert other / one == pytest.approx(ratio, rel=2e-3)
    assert math.sqrt((one**2 + other**2) / 2) == pytest.approx(1, abs=1e-4)
    assert weights_of(config(), {"feature_reg": 1.0}) is None


def test_a_fold_is_what_it_were_with_these_weights():
    for (plain, _), (wanted, _) in zip(
        open_folds(config()), open_folds(config(signature_weights=[1.3, 0.2])), strict=True
    ):
        made = weighted(plain, [1.3, 0.2])
        np.testing.assert_allclose(made.classes.signatures, wanted.classes.signatures, rtol=1e-12)
        assert made.source["signatures"]["weights"] == [1.3, 0.2]
        assert made.once("x", object) is plain.once("x", object)  # features are prepared once for all weights


def test_a_source_that_says_nothing_gets_little(tmp_path):
    tuned = tune(config(), tmp_path / "out", trials=12)
    shape, noise = tuned.config.options["signature_weights"]
    assert noise < shape / 2
    trials = read_yaml(tmp_path / "out" / "study.json")["trials"]  # JSON is YAML
    assert trials[0]["params"] == {RATIO: 1.0}  # as it would have been
    assert max(trial["value"] for trial in trials) == tuned.value > trials[0]["value"]
    chosen = yaml.safe_load((tmp_path / "out" / "config.yaml").read_text())
    assert chosen["options"]["signature_weights"] == [shape, noise]
    assert RATIO not in chosen["params"]
    problem, _ = load("described", **chosen["options"])
    assert problem.source["signatures"]["weights"] == [shape, noise]


def test_it_goes_on_where_it_was(tmp_path):
    tune(config(), tmp_path / "one", trials=4)
    tune(config(), tmp_path / "two", trials=2)
    tune(config(), tmp_path / "two", trials=4)
    one, two = (read_yaml(tmp_path / name / "study.json")["trials"] for name in ("one", "two"))
    assert [trial["params"] for trial in one] == [trial["params"] for trial in two]


def test_parameters_hold_for_the_weights_they_were_chosen_with():
    chosen = config(signature_weights=[1.2, 0.7])
    parameters = Parameters(tuned=(chosen,))
    for given in (config(), chosen):
        assert parameters.with_weights(given).options == chosen.options
        assert parameters.of(parameters.with_weights(given)) == FIXED
    other = config(signature_weights=[1, 2])
    with refused("params-elsewhere"):
        parameters.with_weights(other)
    with refused("params-elsewhere"):
        Parameters(tuned=(config(),)).with_weights(other)
    assert Parameters().with_weights(other) == other


def test_a_comparison_takes_them(tmp_path, here):
    weights = [1.41, 0.05]
    parameters = Parameters(tuned=(config(signature_weights=weights),))
    results = {}
    for name, given in (("plain", Parameters()), ("tuned", parameters)):
        (row,) = compare(ComparisonPlan([config()], ["eszsl"], parameters=given), tmp_path / name)
        results[name] = row.figures["top1"].mean
    (named,) = compare(ComparisonPlan([config(signature_weights=weights)], ["eszsl"]), tmp_path / "named")
    assert results["tuned"] == named.figures["top1"].mean != results["plain"]
