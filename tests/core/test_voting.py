"""Eq. 5-7 against loops over images and heads, and both kinds of ties.

Embeddings and weights are small whole numbers where ties matter: single precision adds those up exactly, so classes tie
exactly as often as they should.
"""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pren.core.voting import (
    Network,
    gzsl_scores,
    head_votes,
    mean_probabilities,
    tie_break_weight,
    vote_shares,
    zsl_scores,
)


@st.composite
def elections(draw):
    """Subsets (K, L) that cover the unseen classes; whole numbers as embeddings (K, h, L) and raw outputs (K, N, h)."""
    heads, n_seen, n_unseen = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    h, images = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    subsets = np.zeros((heads, n_seen + n_unseen), dtype=bool)
    subsets[:, n_seen:] = rng.random((heads, n_unseen)) < 0.6
    subsets[rng.integers(heads, size=n_unseen), n_seen + np.arange(n_unseen)] = True
    subsets[~subsets.any(axis=1), -1] = True
    E = rng.integers(-2, 3, size=(heads, h, n_seen + n_unseen))
    return subsets, E, torch.from_numpy(rng.integers(-3, 4, size=(heads, images, h))).float()


def candidates_for_a_vote(E, raw, Z, output_relu):
    """Every class of Z_k that one head may vote for: best after the ReLU, and best before it among those."""
    v = np.maximum(raw, 0) if output_relu else raw
    ranking = {c: (v @ E[:, c], raw @ E[:, c]) for c in np.flatnonzero(Z)}
    return {c for c, rank in ranking.items() if rank == max(ranking.values())}


def softmax(x):
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def phi_and_p_by_loops(ensemble, raw):
    """Eq. 7 and the mean of p_k, from the heads' votes."""
    E, subsets = ensemble.embeddings.double().numpy(), ensemble.subsets.numpy()
    v = ensemble.activate(raw).double().numpy()
    votes = head_votes(ensemble, raw).numpy()
    K, N, _ = raw.shape
    L = subsets.shape[1]
    phi, p = np.zeros((N, L)), np.zeros((N, L))
    for n in range(N):
        for c in range(L):
            heads = [k for k in range(K) if subsets[k, c]]
            if heads:
                phi[n, c] = sum(votes[k, n] == c for k in heads) / len(heads)
            p[n, c] = np.mean([softmax(v[k, n] @ E[k])[c] for k in heads or range(K)])
    return phi, p


# --- Eq. 5: the heads vote


@given(elections(), st.booleans())
def test_each_head_votes_for_the_best_class_of_its_subset(make_ensemble, election, output_relu):
    subsets, E, raw = election
    votes = head_votes(make_ensemble(subsets, E, output_relu=output_relu), raw)
    assert votes.shape == raw.shape[:2]
    for k in range(len(subsets)):
        for n in range(raw.shape[1]):
            assert votes[k, n].item() in candidates_for_a_vote(E[k], raw[k, n].numpy(), subsets[k], output_relu)


@pytest.mark.parametrize("better", [1, 2, 3])
def test_where_the_relu_cuts_everything_the_score_before_it_decides(make_ensemble, better):
    subsets = [[False, True, True, True]]
    E = np.full((1, 1, 4), 2.0)  # one coordinate, which the ReLU cuts: the class that asks least for it is best
    E[0, 0, better] = 1.0
    E[0, 0, 0] = 0.0  # a seen class would be better still, but the head does not vote on it
    votes = head_votes(make_ensemble(subsets, E), torch.tensor([[[-1.0]]]))
    assert votes.tolist() == [[better]]


def test_the_score_before_the_relu_decides_nothing_else(make_ensemble):
    # After the ReLU class 1 has 2 and class 2 has 1; before it they have -8 and 11.
    subsets, E, raw = [[False, True, True]], [[[0, 2, 1], [0, 10, -10]]], torch.tensor([[[1.0, -1.0]]])
    assert head_votes(make_ensemble(subsets, E), raw).tolist() == [[1]]
    assert head_votes(make_ensemble(subsets, E, output_relu=False), raw).tolist() == [[2]]


def test_a_head_may_vote_below_zero_and_never_outside_its_subset(make_ensemble):
    E = [[[5, -1, -2, 4]]]
    votes = head_votes(make_ensemble([[False, True, True, False]], E), torch.tensor([[[1.0]]]))
    assert votes.tolist() == [[1]]


# --- Eq. 7: the votes become scores


@given(elections())
def test_every_head_has_one_vote(make_ensemble, election):
    subsets, E, raw = election
    phi = vote_shares(head_votes(make_ensemble(subsets, E), raw), torch.from_numpy(subsets))
    assert phi.dtype == torch.float64
    assert ((phi >= 0) & (phi <= 1)).all()
    votes = phi * torch.from_numpy(subsets.sum(axis=0))
    assert torch.allclose(votes.sum(dim=1), torch.tensor(float(len(subsets)), dtype=torch.float64))
    assert not phi[:, ~subsets.any(axis=0)].any()


@given(elections())
def test_scores_are_those_of_the_loops(make_ensemble, election):
    subsets, E, raw = election
    ensemble = make_ensemble(subsets, E)
    phi, p = phi_and_p_by_loops(ensemble, raw)
    unseen = subsets.any(axis=0)
    similarities = ensemble.similarities(ensemble.activate(raw))
    assert np.allclose(vote_shares(head_votes(ensemble, raw), ensemble.subsets), phi)
    assert np.allclose(mean_probabilities(similarities, ensemble.subsets), p, atol=1e-6)
    epsilon = float(tie_break_weight(ensemble.subsets))
    zsl = zsl_scores(ensemble, raw)
    assert zsl.dtype == torch.float64
    assert np.allclose(zsl[:, unseen], (phi + epsilon * p)[:, unseen], rtol=0, atol=1e-6 * epsilon)
    assert np.allclose(zsl[:, ~unseen], p[:, ~unseen], atol=1e-6)


@given(elections())
def test_generalised_scores_are_those_of_the_loops(make_ensemble, election):
    subsets, E, raw = election
    ensemble = make_ensemble(subsets, E)
    phi, p = phi_and_p_by_loops(ensemble, raw)
    seen = ~subsets.any(axis=0)
    probability = gzsl_scores(ensemble, raw, "probability")
    assert probability.dtype == torch.float64
    assert np.allclose(probability, p, atol=1e-6)
    literal = gzsl_scores(ensemble, raw, "literal")
    assert literal.dtype == torch.float64
    epsilon = float(tie_break_weight(ensemble.subsets))
    v = ensemble.activate(raw).numpy()
    for n in range(raw.shape[1]):
        for c in range(len(seen)):
            if seen[c]:
                expected = np.mean([v[k, n] @ E[k][:, c] for k in range(len(subsets))])
            else:
                expected = phi[n, c] + epsilon * p[n, c]
            assert literal[n, c].item() == pytest.approx(expected, abs=1e-6)


def test_the_probabilities_of_a_head_are_over_all_classes(make_ensemble):
    ensemble = make_ensemble([[False, False, True, True]] * 2, np.zeros((2, 1, 4)))
    assert torch.allclose(gzsl_scores(ensemble, torch.ones(2, 3, 1), "probability"), torch.tensor(0.25).double())


def test_the_probability_of_an_unseen_class_is_that_of_its_own_heads(make_ensemble):
    # The head that does not vote on class 1 is sure of it; only the head that does is asked.
    E = [[[0, 9, 0]], [[0, 0, 0]]]
    p = gzsl_scores(make_ensemble([[0, 0, 1], [0, 1, 0]], E), torch.ones(2, 1, 1), "probability")
    assert p[0, 1].item() == pytest.approx(1 / 3)
    assert p[0, 0].item() == pytest.approx((1 / 3 + 1 / (2 + np.exp(9))) / 2)  # a seen class: all heads


# --- ties between classes


def test_equal_vote_shares_are_decided_by_the_probabilities(make_ensemble):
    subsets = [[False, True, True]] * 2
    for first, second in ((1, 2), (2, 1)):
        E = np.zeros((2, 1, 3))
        E[0, 0, first], E[1, 0, second] = 1, 2  # one vote each, but the second head is surer of its own
        scores = zsl_scores(make_ensemble(subsets, E), torch.ones(2, 1, 1))[0]
        assert scores[1:].argmax().item() + 1 == second
        assert (scores[1:] - 0.5).abs().max() <= 0.2  # both have half of the votes


def test_a_vote_outweighs_any_probability(make_ensemble):
    # Two heads are barely for class 1, the third is sure of class 2.
    E = np.zeros((3, 1, 3))
    E[:2, 0, 1], E[2, 0, 2] = 0.01, 20
    assert zsl_scores(make_ensemble([[False, True, True]] * 3, E), torch.ones(3, 1, 1))[0].argmax() == 1


@given(st.data())
def test_one_number_orders_classes_by_votes_and_then_by_probability(data):
    n_first, n_second = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 60))
    heads = max(n_first, n_second)
    subsets = torch.zeros(heads, 2, dtype=torch.bool)
    subsets[:n_first, 0], subsets[:n_second, 1] = True, True
    epsilon = float(tie_break_weight(subsets))

    def one_class(n):
        votes = data.draw(st.integers(0, n))
        p = data.draw(st.integers(0, 10**6))
        return (Fraction(votes, n), p), votes / n + epsilon * (p / 10**6)

    (first, first_score), (second, second_score) = one_class(n_first), one_class(n_second)
    assert (first_score > second_score) == (first > second)
    assert (first_score < second_score) == (first < second)


@pytest.mark.parametrize("n", range(1, 60))
def test_the_closest_vote_shares_are_kept_apart(n):
    subsets = torch.ones(n, 2, dtype=torch.bool)
    if n > 1:
        subsets[0, 1] = False  # n and n - 1 heads, as even coverage has them: shares differ by 1 / n (n - 1) at least
    epsilon = float(tie_break_weight(subsets))
    sizes = subsets.sum(dim=0).tolist()
    shares = sorted({Fraction(votes, size) for size in sizes for votes in range(size + 1)})
    gaps = [high - low for low, high in pairwise(shares)]
    assert 0 < epsilon < min(gaps)
    assert epsilon < 1 / n**2


# --- the network


@pytest.mark.parametrize("rule", ["votes", "literal", "probability"])
def test_a_network_scores_by_its_rule(make_ensemble, rule):
    ensemble = make_ensemble([[0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]])
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
    images = torch.from_numpy(np.random.default_rng(0).normal(size=(7, 3, 2, 2)).astype(np.float32))
    with torch.inference_mode():
        raw = ensemble(backbone(images))
        expected = zsl_scores(ensemble, raw) if rule == "votes" else gzsl_scores(ensemble, raw, rule)
        network = Network(backbone, ensemble, rule)
        assert torch.equal(network(images), expected)
        assert torch.equal(Network(backbone, ensemble).scores(images, rule), expected)
    others = [network.scores(images, other) for other in {"votes", "literal", "probability"} - {rule}]
    assert not any(torch.allclose(scores, expected) for scores in others)


def test_a_network_votes_unless_it_is_told_otherwise(make_ensemble):
    assert Network(nn.Identity(), make_ensemble([[0, 1, 1]])).rule == "votes"


def test_the_loss_of_a_network_is_that_of_its_features(make_ensemble):
    ensemble = make_ensemble([[0, 1, 1], [0, 1, 1]])
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
    images, targets = torch.ones(5, 3, 2, 2), torch.tensor([0, 1, 2, 0, 1])
    loss = Network(backbone, ensemble).loss(images, targets)
    assert torch.equal(loss, ensemble.loss(backbone(images), targets))
    loss.backward()
    assert backbone[1].weight.grad.abs().max() > 0
