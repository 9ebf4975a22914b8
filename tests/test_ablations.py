"""The variants of PrEN that only a benchmark has: each differs from PrEN in the one thing that it says."""

import numpy as np
import pytest
import torch

from benchmarks import ablations
from benchmarks.ablations import VARIANTS, ByIndex, accumulated, main
from pren.core.projection import similarity_matrix
from pren.core.pseudo import PseudoLabels
from pren.methods.pren import PrEN

SMALL = {"heads": 4, "dim": 3, "rounds": 1, "initial_batches": 2, "batches": 1, "hidden": (4,), "batch_size": 4}


def fitted(make_problem, name="pren", **given):
    variant = VARIANTS[name]
    problem = variant.change(make_problem(n_unseen=8, m=9))
    return variant.method(**{**SMALL, **variant.params, **given}).fit(problem)


def test_largest_absolute_eigenvalues_by_a_plain_loop(make_problem):
    model = fitted(make_problem, "absolute")
    order = np.argsort(model.classes_.names)
    signatures, seen = model.classes_.signatures[order], model.classes_.seen[order]
    ensemble = model.network_.ensemble
    for E, Z in zip(ensemble.embeddings.numpy(), ensemble.subsets.numpy(), strict=True):
        values, vectors = np.linalg.eigh(similarity_matrix(signatures[seen], signatures[Z]))
        largest = sorted(range(len(values)), key=lambda i: -abs(values[i]))[:3]
        for row, i in zip(E, largest, strict=True):
            expected = signatures @ vectors[:, i]
            expected = expected if vectors[np.abs(vectors[:, i]).argmax(), i] > 0 else -expected
            assert row == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("name", "size"), [("quarter", 2), ("three-quarters", 6)])
def test_subsets_have_their_size_and_cover_evenly(make_problem, name, size):
    subsets = fitted(make_problem, name).network_.ensemble.subsets.numpy()
    assert set(subsets.sum(axis=1)) == {size}
    covered = subsets.sum(axis=0)[subsets.any(axis=0)]
    assert len(covered) == 8
    assert covered.max() - covered.min() <= 1


def test_ties_go_to_the_first_class(make_ensemble):
    ensemble = make_ensemble([[0, 1, 1, 1], [0, 1, 1, 0]], vectors=np.zeros((2, 3, 4)))
    scores = ByIndex(torch.nn.Identity(), ensemble).scores(torch.zeros(5, 4), "votes")
    assert scores[:, 1:].tolist() == [[1.0, 0.0, 0.0]] * 5


def test_without_votes_scores_are_mean_probabilities(make_problem):
    model = fitted(make_problem, "no-votes")
    scores = model.scores(make_problem(n_unseen=8, m=9).pool)
    unseen = model.network_.ensemble.subsets.any(dim=0).numpy()
    assert unseen.sum() == 8
    assert (scores > 0).all()
    assert not np.allclose(scores * 4, np.round(scores * 4))  # no shares of four heads


def test_the_mean_of_losses_is_a_larger_epsilon(make_problem):
    """One step from the same weights: g / K with ε moves weights as g with K ε does."""
    torch.manual_seed(0)
    weights = torch.nn.Parameter(torch.randn(50))
    other = torch.nn.Parameter(weights.detach().clone())
    gradient = 1e-7 * torch.randn(50)
    weights.grad, other.grad = gradient, gradient / 4
    torch.optim.Adam([weights], eps=4e-8).step()
    torch.optim.Adam([other], eps=1e-8).step()
    assert torch.allclose(weights, other, atol=1e-7)
    assert fitted(make_problem, "mean-loss")._adam(fitted(make_problem).network_).defaults["eps"] == 4e-8


def test_accumulated_pseudo_labels_keep_their_first_label():
    last = PseudoLabels(np.array([2]), np.array([1]))
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    found = accumulated(scores, np.array([True, True]), 1, last)
    assert list(zip(found.images.tolist(), found.labels.tolist(), strict=True)) == [(2, 1), (0, 0), (1, 1)]


def test_changed_signatures(make_problem):
    problem = make_problem()
    table = VARIANTS["centred"].change(problem).classes
    assert np.linalg.norm(table.signatures, axis=1) == pytest.approx(1)
    expected = problem.classes.signatures[0] - problem.classes.signatures[problem.classes.seen].mean(axis=0)
    assert table.signatures[0] == pytest.approx(expected / np.linalg.norm(expected))
    assert VARIANTS["longer"].change(problem).classes.signatures == pytest.approx(4 * problem.classes.signatures)


def test_every_variant_is_compared_with_one_of_its_setting():
    for variant in VARIANTS.values():
        assert VARIANTS[variant.against].setting in (None, variant.setting)
        assert issubclass(variant.method, PrEN)


def test_runs_are_paired_and_kept(monkeypatch, tmp_path, capsys):
    figures = {("pren", 0): 0.5, ("pren", 1): 0.6, ("no-relu", 0): 0.53, ("no-relu", 1): 0.65}
    monkeypatch.setattr(ablations, "STORE", tmp_path)
    monkeypatch.setattr(ablations, "figure", lambda name, data, heads, seed: figures[name, seed])
    for name, seed in figures:
        main(["numbers", "--one", name, "--heads", "5", "--seeds", str(seed)])
    main(["numbers", "--heads", "5", "--seeds", "2", "--stored"])
    assert "| no output ReLU | 2 | 59.0 | +4.0 | 1.4 |" in capsys.readouterr().out
