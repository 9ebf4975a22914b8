"""The package in docs/extending.md can be installed, and what it brings is like any of ours."""

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from run_folders import run_folder

from pren.data import DATASETS, load
from pren.data.describe import ENCODERS
from pren.evaluation import evaluate_scores
from pren.images.backbones import create_backbone, list_backbones
from pren.images.registered import BACKBONES
from pren.methods.preparation import PREPARATIONS
from pren.methods.refinement import REFINEMENTS
from pren.methods.registry import METHODS, create
from pren.methods.selection import SELECTIONS
from pren.methods.storage import load_model
from pren.research.comparison import ComparisonPlan, compare
from pren.research.sampling import Sampler
from pren.store.config import RunConfig

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[1]
FILES = {"toml": "pyproject.toml", "python": "pren_example.py"}
METHOD = "ridge-angle"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that the page's package is installed to."""
    package, target = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("site")
    page = (REPOSITORY / "docs" / "extending.md").read_text(encoding="utf-8")
    for language, file in FILES.items():
        blocks = re.findall(rf"^```{language}\n(.*?)^```\n", page, flags=re.DOTALL | re.MULTILINE)
        (package / file).write_text("\n".join(blocks), encoding="utf-8")
    alone = ["--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", "-q", *alone, "--target", str(target), str(package)]
    result = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return target


# Commands one after the other, since a process takes long to start; what they print is printed as a list.
COMMANDS = """
import contextlib, io, json, sys
from pren.cli.__main__ import app
said = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        app(arguments, standalone_mode=False)
    said.append(out.getvalue())
print(json.dumps(said))
"""


def run(commands, installed, folder):
    """Run commands of ``pren`` in a process of their own, beside the installed package."""
    path = os.pathsep.join(filter(None, [str(installed), str(REPOSITORY / "src"), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    environment = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_it_is_listed_fitted_loaded_again_and_known_to_the_workers_of_compare(installed, tmp_path):
    commands = [
        ["list", "datasets", "bl*", "--json"],
        ["fit", "blobs", "--option", "spread=0.2", "--method", METHOD, "--set", "reg=2", "--out", "run"],
        ["evaluate", "run", "--json"],
        ["compare", "blobs", "--methods", METHOD, "--json"],
    ]
    listed, _, evaluated, compared = run(commands, installed, tmp_path)
    summary = "Points around the signatures of ten classes, two of them unseen."
    assert json.loads(listed) == [{"name": "blobs", "summary": summary}]
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    assert (config["data"], config["options"], config["params"]["reg"]) == ("blobs", {"spread": 0.2}, 2.0)
    assert json.loads(evaluated)["top1"] > 0.9
    (row,) = json.loads(compared)["rows"]
    assert (row["data"], row["method"], row["runs"], row["failed"]) == ("blobs", "Ridge", 1, 0)


@pytest.fixture
def example(installed, monkeypatch):
    """The module in this process; what it registers goes away with the test."""
    for registry in (BACKBONES, DATASETS, ENCODERS, METHODS, PREPARATIONS, REFINEMENTS, SELECTIONS):
        monkeypatch.setattr(registry, "_entries", dict(registry))
    monkeypatch.syspath_prepend(installed)
    yield import_module("pren_example")
    del sys.modules["pren_example"]


@pytest.mark.parametrize(("setting", "chance"), [("zsl", 0.5), ("gzsl", 0.1)])
def test_the_data_can_be_recognised(example, setting, chance):
    problem, answers = load("blobs", setting=setting)
    assert (
        evaluate_scores(create("eszsl").fit(problem).scores(problem.pool), answers, problem.classes, setting).top1
        > chance
    )


def test_the_encoder_counts_words(example):
    table = ENCODERS["words"](["a horse a horse", "A horse", "seal"])
    assert table.shape == (3, 64)
    assert np.array_equal(table[0], 2 * table[1])
    assert not (table[1] * table[2]).any()


@pytest.mark.parametrize(("setting", "chance"), [("zsl", 0.05), ("gzsl", 0.01)])
def test_the_method_learns_and_can_be_kept(example, setting, chance, tmp_path):
    problem, answers = load("numbers-features", setting=setting)
    method = create(METHOD).fit(problem)
    scores = method.scores(problem.pool)
    assert evaluate_scores(scores, answers, problem.classes, setting).top1 > 2 * chance
    method.save(tmp_path)
    np.testing.assert_array_equal(load_model(tmp_path).scores(problem.pool), scores)


def test_it_can_be_tuned_compared_and_run(example, here, tmp_path):
    from pren.research.tuning import tune

    config = RunConfig(data="blobs", setting="gzsl", method=METHOD)
    tuned = tune(config, tmp_path / "tuned", trials=3)
    written = yaml.safe_load((tmp_path / "tuned" / "config.yaml").read_text())
    assert written["params"] == tuned.config.params
    rows = compare(ComparisonPlan([config], [METHOD, "eszsl"]), tmp_path / "out")
    assert [row.failed for row in rows] == [0, 0]
    assert run_folder(tuned.config, tmp_path / "run").figures().setting == "gzsl"


def test_its_space_is_one_of_its_parameters(example):
    method = METHODS[METHOD].method
    sampler = Sampler(method.space, 0, create(METHOD).get_params())
    assert sampler.propose() == {key: create(METHOD).get_params()[key] for key in method.space}


def test_a_preparation_and_a_refinement_go_with_every_method(example, tmp_path):
    problem, _ = load("blobs")
    for name in (METHOD, "eszsl"):
        method = create(name, features="root", refinement="centred").fit(problem)
        np.testing.assert_allclose(method.scores(problem.pool).mean(axis=0), 0, atol=1e-12)
        method.save(tmp_path / name)
        again = load_model(tmp_path / name)
        np.testing.assert_array_equal(again.scores(problem.pool), method.scores(problem.pool))
        assert not np.allclose(method.scores(problem.pool), create(name).fit(problem).scores(problem.pool))


def test_a_selection_rule_is_used_by_pren(example):
    problem, _ = load("blobs")
    method = create("pren", heads=2, rounds=1, dim=4, hidden=(8,), initial_batches=1, batches=1, selection="whole-pool")
    rounds = list(method.fit_rounds(problem))
    assert sorted(rounds[-1].pseudo.images) == list(range(len(problem.pool)))


def test_a_backbone_makes_features_of_images(example):
    assert list_backbones("thumb*") == ["thumbnail"]
    network, width = create_backbone("thumbnail", (3, 64, 64), 0)
    images = torch.zeros(2, 3, 64, 64)
    images[:, :, :16, :16] = 1
    assert network(images).shape == (2, width) == (2, 48)
    assert network(images)[0].nonzero().flatten().tolist() == [0, 16, 32]
