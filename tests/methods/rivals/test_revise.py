"""ReViSE: its terms against loops and autograd, and what training does with them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from pren.methods.rivals.revise import WIDTHS, Autoencoder, ReViSE, jacobian_norm, mmd
from pren.problem import Problem

QUICK = {"epochs": 6, "hidden": 8, "signature_hidden": 5, "code": 4, "batch_size": 8, "lr": 1e-2}


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.integers(0, 99))
def test_the_contractive_term_is_the_norm_of_the_jacobian(n, d, k, seed):
    rng = np.random.default_rng(seed)
    network = Autoencoder(d, k, 2, rng).double()
    X = torch.from_numpy(rng.normal(size=(n, d)))
    hidden = network(X)[0]
    norms = jacobian_norm(hidden, network.first.weight)
    for x, norm in zip(X, norms, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda x: network.first(x).tanh(), x)
        assert torch.isclose(norm, jacobian.square().sum(), rtol=1e-9)


@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
def test_the_discrepancy_is_that_of_a_loop(n, l, k, seed):  # noqa: E741
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=(n, k)), rng.normal(size=(l, k)) + 1
    both = [*u, *v]
    unit = np.mean([((a - b) ** 2).sum() for a in both for b in both])

    def kernel(A, B):
        return np.mean([sum(np.exp(-((a - b) ** 2).sum() / (w * unit)) for w in WIDTHS) for a in A for b in B])

    expected = kernel(u, u) + kernel(v, v) - 2 * kernel(u, v)
    assert np.isclose(float(mmd(torch.from_numpy(u), torch.from_numpy(v))), expected, atol=1e-9)


def test_equal_samples_have_no_discrepancy():
    u = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert abs(float(mmd(u, u.flip(0)))) < 1e-12
    assert float(mmd(u, u + 1)) > 0.1
    assert float(mmd(torch.zeros(2, 3), torch.zeros(4, 3))) == 0


def test_the_codes_are_those_of_the_whole_network():
    network = Autoencoder(5, 4, 3, np.random.default_rng(0))
    x = torch.ones(2, 5)
    _, code, rebuilt = network(x)
    assert torch.equal(network.encode(x), code)
    assert code.shape == (2, 3)
    assert rebuilt.shape == (2, 5)


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_scores_are_products_of_codes(make_problem, setting):
    problem = make_problem(setting=setting)
    model = ReViSE(**QUICK).fit(problem)
    x = torch.from_numpy(model.preparation_.of(problem.pool)).float()
    rows = problem.classes.signatures
    scaled = (rows - rows.mean(axis=0)) / (rows - rows.mean(axis=0)).std()
    signatures = torch.from_numpy(scaled).float()
    with torch.no_grad():
        expected = model.network_.images.encode(x) @ model.network_.signatures.encode(signatures).T
    assert np.allclose(model.scores(problem.pool), expected.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "params",
    [
        {"reconstruction": 0.0},
        {"contraction": 1.0},
        {"discrepancy": 5.0},
        {"self_weight": 1.0},
        {"dropout": 0.0},
        {"seed": 1},
    ],
    ids=str,
)
def test_every_part_of_the_loss_counts(make_problem, params):
    problem = make_problem()
    plain, changed = (ReViSE(**QUICK, **more).fit(problem).scores(problem.pool) for more in ({}, params))
    assert not np.allclose(plain, changed, atol=1e-4)


def test_self_training_waits_for_a_third_of_the_epochs(make_problem):
    problem = make_problem()
    short = {**QUICK, "epochs": 1}
    never, soon = (ReViSE(**short, self_weight=w).fit(problem).scores(problem.pool) for w in (0.0, 1.0))
    assert np.array_equal(never, soon)


@pytest.mark.slow
def test_self_training_decides(make_problem):
    """The more an image believes itself, the less it hesitates."""
    problem = make_problem()
    unseen = problem.classes.unseen

    def doubt(weight):
        scores = ReViSE(**{**QUICK, "epochs": 20}, self_weight=weight).fit(problem).scores(problem.pool)[:, unseen]
        p = torch.from_numpy(scores).softmax(dim=1)
        return float(torch.special.entr(p).sum(dim=1).mean())

    assert doubt(3.0) < doubt(0.0)


def test_what_can_be_learned_is_learned(arrays):
    data = arrays()
    answers = data.pop("answers")
    problem = Problem.from_arrays(**data)
    model = ReViSE(epochs=40, hidden=32, code=8, batch_size=16, lr=1e-2, dropout=0.0).fit(problem)
    assert (model.predict(problem.train, among="seen") == problem.classes.named(problem.labels)).mean() > 0.9
    assert (model.predict(problem.pool) == problem.classes.named(answers)).mean() > 0.6


def test_training_that_diverges_says_so(make_problem):
    with refused("diverged"):
        ReViSE(**{**QUICK, "lr": 1e30}).fit(make_problem())
