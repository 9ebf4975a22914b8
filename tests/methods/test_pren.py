"""What PrEN makes of its parameters: the network, the plan and the learner."""

import numpy as np
import pytest
import torch

from pren.core.projection import all_subsets, half_subsets, original, project
from pren.methods import pren
from pren.training.kept_memory import KeptLinear


@pytest.fixture
def handed_on(monkeypatch):
    """Catch what PrEN hands on instead of training."""
    caught = {}

    class Learner(pren.ProgressiveLearner):
        def __init__(self, fabric, network, adam, train, labels, pool, **options):
            caught.update(options, labels=labels)
            super().__init__(fabric, network, adam, train, labels, pool, **options)

    def nothing(learner, select, plan, last):
        caught.update(plan=plan, select=select, last=last)
        yield from ()

    monkeypatch.setattr(pren, "ProgressiveLearner", Learner)
    monkeypatch.setattr(pren, "progressive_training", nothing)
    return caught


@pytest.mark.parametrize(("rule", "gamma_of_the_rounds"), [("probability", 0.0), ("literal", 0.3)])
@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_every_parameter_goes_where_it_belongs(small, make_problem, handed_on, setting, rule, gamma_of_the_rounds):
    problem = make_problem(n_seen=4, per_class=6, setting=setting)
    params = {"rounds": 1, "initial_batches": 2, "batches": 3, "batch_size": 8, "pieces": 4, "seed": 9}
    small(**params, rho=0.5, n_max=20, gzsl_rule=rule, gamma=0.3, first_rounds=7).fit(problem)
    plan, labels = handed_on.pop("plan"), handed_on.pop("labels")
    by_name = np.argsort(problem.classes.names)
    assert (plan.rounds, plan.per_class) == (1, 3)
    assert plan.first_rounds == (None if setting == "zsl" else 7)
    assert np.array_equal(plan.unseen, problem.classes.unseen[by_name])
    assert np.array_equal(by_name[labels], problem.labels)
    assert handed_on == {
        "initial_batches": 2,
        "batches": 3,
        "batch_size": 8,
        "pieces": 4,
        "rule": rule,
        "gamma": gamma_of_the_rounds,
        "refined": None,
        "augment": None,
        "seed": 9,
        "select": pren.SELECTIONS["top-per-class"],
        "last": None,
    }


@pytest.mark.parametrize(
    ("params", "setting", "rule"),
    [
        ({}, "zsl", "votes"),
        ({"gzsl_rule": "literal"}, "zsl", "votes"),
        ({}, "gzsl", "probability"),
        ({"gzsl_rule": "literal", "output_relu": False, "hidden": (7, 6)}, "gzsl", "literal"),
        ({"projection": False}, "zsl", "votes"),
        ({"heads": 1, "projection": False, "subsets": "all"}, "zsl", "votes"),
    ],
)
def test_the_network_is_the_papers(small, make_problem, params, setting, rule):
    problem = make_problem(setting=setting)
    model = small(rounds=0, initial_batches=0, dim=4, **params).fit(problem)
    network, heads = model.network_, params.get("heads", 6)
    assert network.rule == rule
    assert network.ensemble.output_relu == params.get("output_relu", True)
    widths = [layer.weight.shape[2] for layer in network.ensemble.layers]
    by_name = np.argsort(problem.classes.names)
    signatures, seen = problem.classes.signatures[by_name], problem.classes.seen[by_name]
    subsets = all_subsets(seen, heads) if params.get("subsets") == "all" else half_subsets(seen, heads, 0)
    projected = params.get("projection", True)
    labels = project(signatures, seen, subsets, 4, "null", 0) if projected else original(signatures, subsets)
    assert widths == [*params.get("hidden", (8,)), labels.vectors.shape[1]]
    assert torch.equal(network.ensemble.subsets, torch.from_numpy(subsets))
    assert torch.equal(network.ensemble.embeddings, torch.from_numpy(labels.vectors).float())
    assert all(type(layer) is KeptLinear for layer in network.ensemble.layers)


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_the_network_gives_the_scores_of_the_model(small, make_problem, whole, setting):
    """With the classes in the order of their names, and before γ is taken off."""
    problem = make_problem(setting=setting)
    model = small(gamma=0.25).fit(problem)
    with torch.inference_mode():
        by_name = model.network_(torch.from_numpy(whole(problem.pool))).numpy()
    expected = by_name[:, np.argsort(np.argsort(problem.classes.names))]
    if setting == "gzsl":
        expected = expected - 0.25 * problem.classes.seen
    assert np.array_equal(model.scores(problem.pool), expected)


@pytest.mark.parametrize(("n_unseen", "heads"), [(1, 1), (1, 3), (2, 1), (2, 4), (3, 2), (3, 7)])
def test_few_unseen_classes_are_enough(small, make_problem, n_unseen, heads):
    problem = make_problem(n_unseen=n_unseen)
    model = small(heads=heads).fit(problem)
    assert np.isfinite(model.scores(problem.pool)).all()
    assert model.network_.ensemble.subsets.any(dim=0).sum() == n_unseen
    unseen = problem.classes.named(np.flatnonzero(problem.classes.unseen))
    assert np.isin(model.predict(problem.pool), unseen).all()


@pytest.mark.parametrize("backbone_lr", [None, 1e-5])
def test_the_backbone_has_its_own_learning_rate(small, make_problem, backbone_lr):
    problem = make_problem(shape=(1, 4, 4))
    before, after = (
        small(rounds=0, initial_batches=steps, lr=1e-3, backbone_lr=backbone_lr).fit(problem).network_
        for steps in (0, 1)
    )
    moves = {"backbone": 0.0, "ensemble": 0.0}
    for (name, old), new in zip(before.named_parameters(), after.parameters(), strict=True):
        part = name.split(".")[0]
        moves[part] = max(moves[part], (new - old).abs().max().item())
    # Adam's first step goes as far as the learning rate.
    assert moves["ensemble"] == pytest.approx(1e-3, rel=0.01)
    assert moves["backbone"] == pytest.approx(backbone_lr or 1e-3, rel=0.02)
