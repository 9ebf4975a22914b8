"""QFSL: its loss against loops, what it does to the pool, and going on after an interruption."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pren.methods.network import initial_linear
from pren.methods.rivals.qfsl import QFSL, bias_loss
from pren.methods.storage import load_model
from pren.problem import Problem

QUICK = {"epochs": 4, "batch_size": 8, "lr": 1e-2}
IMAGE = (1, 8, 12)

logits = st.tuples(st.integers(1, 5), st.integers(2, 6), st.integers(0, 99), st.floats(0.1, 10))


def parts(n, L, seed, scale):
    rng = np.random.default_rng(seed)
    unseen = np.zeros(L, dtype=bool)
    unseen[rng.permutation(L)[: rng.integers(1, L)]] = True
    return scale * rng.normal(size=(n, L)), unseen


@given(logits)
def test_the_loss_of_unseen_images_is_that_of_a_loop(size):
    values, unseen = parts(*size)
    losses = []
    for row in values:
        p = np.exp(row) / sum(np.exp(value) for value in row)
        losses.append(-np.log(sum(p[c] for c in range(len(p)) if unseen[c])))
    found = bias_loss(torch.from_numpy(values), torch.from_numpy(unseen), None)
    assert np.isclose(float(found), np.mean(losses), rtol=1e-8)


@given(logits, st.floats(0, 1))
def test_the_loss_of_a_mixed_pool_is_that_of_a_loop(size, share):
    values, unseen = parts(*size)
    p = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
    P = np.mean([sum(row[unseen]) for row in p])
    rest = np.mean([sum(row[~unseen]) for row in p])
    expected = -share * np.log(P) - (1 - share) * np.log(rest)
    found = bias_loss(torch.from_numpy(values), torch.from_numpy(unseen), share)
    assert np.isclose(float(found), expected, rtol=1e-8)


def test_hopeless_logits_have_a_finite_loss():
    values = torch.tensor([[0.0, 1e4], [1e4, 0.0]])
    unseen = torch.tensor([True, False])
    assert float(bias_loss(values, unseen, None)) == 5e3
    assert torch.isfinite(bias_loss(values, unseen, 0.5))


def test_a_layer_is_drawn_within_torchs_bounds():
    layer = initial_linear(16, 300, np.random.default_rng(0))
    assert layer.weight.dtype == torch.float32
    assert 0.24 < float(layer.weight.detach().abs().max()) <= 0.25
    assert 0.2 < float(layer.bias.detach().abs().max()) <= 0.25


def mass(model, problem):
    """The probability that images put on unseen classes."""
    p = torch.from_numpy(model.scores(problem.pool)).softmax(dim=1).numpy()
    return p[:, problem.classes.unseen].sum(axis=1)


def test_the_pool_is_drawn_to_the_unseen_classes(make_problem):
    problem = make_problem()
    without, weak, strong = (mass(QFSL(**QUICK, bias_weight=w).fit(problem), problem).mean() for w in (0.0, 0.5, 3.0))
    assert without < weak < strong


@pytest.mark.parametrize("share", [None, 0.2, 0.8])
def test_in_gzsl_only_a_share_of_the_pool_is(make_problem, share):
    problem = make_problem(setting="gzsl")
    model = QFSL(**{**QUICK, "epochs": 15}, bias_weight=20.0, scale=5.0, unseen_share=share).fit(problem)
    assert abs(mass(model, problem).mean() - (0.5 if share is None else share)) < 0.1


def test_scores_are_log_probabilities_of_the_compatibilities(make_problem, whole):
    problem = make_problem()
    model = QFSL(**QUICK, scale=3.0, hidden=(7,), features="raw").fit(problem)
    first, second = model.network_.embedding
    x = torch.from_numpy(whole(problem.pool))
    A = problem.classes.signatures / np.linalg.norm(problem.classes.signatures, axis=1, keepdims=True)
    with torch.no_grad():
        v = second(first(x).relu()).double()
    expected = (3 * v @ torch.from_numpy(A).T).log_softmax(dim=1)
    assert np.allclose(model.scores(problem.pool), expected.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "params", [{"scale": 2.0}, {"weight_decay": 1.0}, {"features": "standard"}, {"hidden": (6,)}, {"seed": 1}], ids=str
)
def test_every_parameter_counts(make_problem, params):
    problem = make_problem()
    plain, changed = (QFSL(**QUICK, **more).fit(problem).scores(problem.pool) for more in ({}, params))
    assert not np.allclose(plain, changed, atol=1e-4)


def test_the_backbone_learns_too(make_problem):
    problem = make_problem(shape=IMAGE)
    before = QFSL(**{**QUICK, "epochs": 0}).fit(problem).network_.backbone.state_dict()
    after = QFSL(**QUICK).fit(problem).network_.backbone.state_dict()
    slow = QFSL(**QUICK, backbone_lr=1e-12).fit(problem).network_.backbone.state_dict()
    learned = [key for key, value in before.items() if not torch.allclose(value, after[key], atol=1e-4)]
    assert learned
    assert all(torch.allclose(slow[key], before[key], atol=1e-6) for key in learned)


def test_what_can_be_learned_is_learned(arrays):
    data = arrays()
    answers = data.pop("answers")
    problem = Problem.from_arrays(**data)
    model = QFSL(epochs=60, batch_size=16, lr=1e-2, scale=5.0, bias_weight=0.3).fit(problem)
    assert (model.predict(problem.train, among="seen") == problem.classes.named(problem.labels)).mean() > 0.9
    assert (model.predict(problem.pool) == problem.classes.named(answers)).mean() > 0.6


class TestResuming:
    @pytest.mark.parametrize("shape", [(5,), IMAGE], ids=["features", "images"])
    def test_an_interrupted_fit_ends_with_the_same_bits(self, make_problem, tmp_path, shape):
        problem = make_problem(shape=shape)
        expected = QFSL(**QUICK, features="standard").fit(problem).scores(problem.pool)
        model = QFSL(**QUICK, features="standard")
        epochs = model.fit_rounds(problem)
        assert [next(epochs).number for _ in range(2)] == [1, 2]
        state = {key: value.clone() for key, value in model.training_state().items()}
        model.save(tmp_path)
        again = load_model(tmp_path)
        rest = list(again.fit_rounds(problem, state))
        assert [done.number for done in rest] == [3, 4]
        assert all(np.isfinite(done.figures["loss"]) for done in rest)
        assert np.array_equal(again.scores(problem.pool), expected)

    def test_a_state_that_does_not_fit_is_refused(self, make_problem):
        problem = make_problem()
        model = QFSL(**QUICK).fit(problem)
        state = model.training_state()
        wrong = [{"round.number": torch.tensor(5)}, {"round.number": torch.tensor(-1)}]
        wrong += [{key: torch.zeros(3)} for key in state if key.endswith("exp_avg")]
        wrong += [{key: value.double()} for key, value in state.items() if key.endswith("exp_avg_sq")]
        for change in wrong:
            with refused("damaged"):
                list(model.fit_rounds(problem, {**state, **change}))
        for key in state:
            with refused("damaged"):
                list(model.fit_rounds(problem, {name: value for name, value in state.items() if name != key}))


def test_training_that_diverges_says_so(make_problem):
    with refused("diverged"):
        QFSL(**{**QUICK, "lr": 1e38, "epochs": 10}).fit(make_problem())
