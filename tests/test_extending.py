"""The example in docs/extending.md is a method like any other."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from pren.data import load
from pren.evaluation import evaluate
from pren.experiments.comparison import Plan, compare
from pren.experiments.sampling import Sampler
from pren.methods.registry import METHODS, create
from pren.methods.storage import load_model
from pren.runs.config import RunConfig
from pren.runs.train import train

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


@pytest.fixture
def name():
    """Run the page's code; what it registers goes away with the test."""
    known = dict(METHODS)
    (example,) = re.findall(
        r"^```python\n(.*?)^```\n", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    exec(compile(example, PAGE.name, "exec"), {"__name__": "extending"})
    (new,) = set(METHODS) - set(known)
    yield new
    del METHODS[new]


@pytest.mark.parametrize(("setting", "chance"), [("zsl", 0.05), ("gzsl", 0.01)])
def test_it_learns_and_can_be_kept(name, setting, chance, tmp_path):
    problem, answers = load("numbers-features", setting=setting)
    method = create(name).fit(problem)
    scores = method.scores(problem.pool)
    assert evaluate(scores, answers, problem.classes, setting).top1 > 2 * chance
    method.save(tmp_path)
    np.testing.assert_array_equal(load_model(tmp_path).scores(problem.pool), scores)


def test_it_can_be_tuned_compared_and_run(name, here, tmp_path, arrays):
    from pren.experiments.tuning import tune

    np.savez(tmp_path / "data.npz", **arrays("features", "gzsl"))
    config = RunConfig(data=str(tmp_path / "data.npz"), setting="gzsl", method=name)
    tuned = tune(config, tmp_path / "tuned", trials=3)
    written = yaml.safe_load((tmp_path / "tuned" / "config.yaml").read_text())
    assert written["params"] == tuned.config.params
    rows = compare(Plan([config], [name, "eszsl"]), tmp_path / "out")
    assert [row.failed for row in rows] == [0, 0]
    assert train(tuned.config, tmp_path / "run").metrics()["setting"] == "gzsl"


def test_its_space_is_one_of_its_parameters(name):
    method = METHODS[name].method
    sampler = Sampler(method.space, 0, create(name).get_params())
    assert sampler.propose() == {key: create(name).get_params()[key] for key in method.space}
