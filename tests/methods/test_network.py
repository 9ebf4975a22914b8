"""What methods that learn a network share."""

import numpy as np
import pytest
import torch

from pren.core.progressive import Round
from pren.methods.network import NetworkMethod
from pren.methods.preparation import PREPARATIONS
from pren.methods.registry import METHODS
from pren.methods.storage import load_model
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs

NETWORKS = sorted({entry.method.name for entry in METHODS.values() if issubclass(entry.method, NetworkMethod)})


@pytest.fixture(params=NETWORKS)
def name(request):
    return request.param


def test_every_round_says_which_it_is_and_carries_figures(name, quick, make_problem):
    rounds = list(quick(name).fit_rounds(make_problem()))
    assert all(isinstance(done, Round) for done in rounds)
    assert [done.number for done in rounds] == list(range(rounds[0].number, rounds[-1].of + 1))
    assert all(np.isfinite(done.figures["loss"]) for done in rounds)


def test_an_interrupted_fit_ends_with_the_same_bits(name, quick, make_problem, tmp_path):
    problem = make_problem()
    expected = quick(name).fit(problem).scores(problem.pool)
    model = quick(name)
    rounds = model.fit_rounds(problem)
    next(rounds), next(rounds)
    state = {key: value.clone() for key, value in model.training_state().items()}
    model.save(tmp_path)
    again = load_model(tmp_path)
    list(again.fit_rounds(problem, state))
    assert np.array_equal(again.scores(problem.pool), expected)


@pytest.mark.slow
@pytest.mark.parametrize("features", ["l2", "standard", "minmax", "whitened"])
def test_features_are_prepared_for_every_network(name, quick, make_problem, features):
    """A network on prepared features is one that is given them prepared."""
    problem = make_problem()
    learned = PREPARATIONS[features].fit(problem)
    train, pool = (ArrayInputs(learned.of(inputs).astype(np.float32)) for inputs in (problem.train, problem.pool))
    expected = quick(name, features="raw").fit(Problem(train, problem.labels, pool, problem.classes)).scores(pool)
    assert np.array_equal(quick(name, features=features).fit(problem).scores(problem.pool), expected)
    assert not np.allclose(quick(name, features="raw").fit(problem).scores(problem.pool), expected)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(5,), (1, 8, 12)], ids=["features", "images"])
def test_an_export_is_a_few_lines(quick, make_problem, whole, tmp_path, shape):
    """The module is all that somebody who writes an export needs."""
    problem = make_problem(setting="gzsl", shape=shape)
    model = quick("pren", gamma=0.25).fit(problem)
    images = torch.from_numpy(whole(problem.pool))
    batch = {"inputs": {0: torch.export.Dim("batch", min=2)}}
    with torch.no_grad():
        exported = torch.export.export(model.module(), (images[:3],), dynamic_shapes=batch, strict=False)
        torch.export.save(exported, tmp_path / "model.pt2")
        found = torch.export.load(tmp_path / "model.pt2").module()(images)
    assert np.allclose(found.numpy(), model.scores(problem.pool), rtol=1e-6, atol=1e-7)
