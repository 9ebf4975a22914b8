"""Algorithm 1 on problems small enough to follow image by image."""

import copy
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pren.core import progressive
from pren.core.progressive import Schedule, batches, images_at_once, predict, progressive_training, pseudo_labels
from pren.core.pseudo import PseudoLabels, select
from pren.core.voting import Network
from pren.inputs import ArrayInputs
from pren.methods.pren import PrEN
from pren.vision import backbones
from pren.vision.backbones import create_backbone

N_TRAIN, N_POOL = 12, 20
SUBSETS = [[0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]]  # two seen classes, three unseen ones
SEEN = np.array([True, True, False, False, False])
LABELS = np.arange(N_TRAIN) % 2
ZSL = Schedule(
    rounds=3,
    initial_batches=4,
    batches=5,
    batch_size=6,
    pieces=1,
    per_class=2,
    first_rounds=None,
    gzsl_rule="probability",
    gamma=0.0,
    seed=0,
)
GZSL = replace(ZSL, rounds=4, first_rounds=2, per_class=4)


def inputs(kind="features", seed=0):
    """Training images and a pool; the first number of each says which one it is."""
    rng = np.random.default_rng(seed)
    shape = (4,) if kind == "features" else (1, 2, 2)
    train, pool = (rng.normal(size=(n, *shape)).astype(np.float32) for n in (N_TRAIN, N_POOL))
    train.reshape(N_TRAIN, -1)[:, 0] = np.arange(N_TRAIN) / 64
    pool.reshape(N_POOL, -1)[:, 0] = (N_TRAIN + np.arange(N_POOL)) / 64
    return ArrayInputs(train), ArrayInputs(pool)


class Diary(Network):
    """A network that writes down what it is trained on, and in which mode it is when."""

    def __init__(self, backbone, ensemble):
        super().__init__(backbone, ensemble)
        self.batches: list[list[tuple[int, int]]] = []
        self.losses: list[float] = []
        self.training_mode: list[bool] = []
        backbone.register_forward_hook(lambda module, *_: self.training_mode.append(module.training))

    def forward(self, images, targets):
        loss = super().forward(images, targets)
        numbers = (images.flatten(1)[:, 0] * 64).round().int()
        self.batches.append(list(zip(numbers.tolist(), targets.tolist(), strict=True)))
        self.losses.append(loss.item())
        return loss


@pytest.fixture
def make_network(make_ensemble):
    def build(kind="features"):
        if kind == "features":
            return Diary(nn.Identity(), make_ensemble(SUBSETS))
        torch.manual_seed(0)
        return Diary(nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten()), make_ensemble(SUBSETS, in_features=2))

    return build


def adam(network):
    return torch.optim.Adam(network.parameters(), lr=0.01)


def run(fabric, network, schedule=ZSL, optimizer=None, last=None, kind="features"):
    train, pool = inputs(kind)
    optimizer = optimizer or adam(network)
    return progressive_training(fabric, network, network, optimizer, train, LABELS, pool, schedule, last)


def rounds_with_weights(training, network):
    return [(done, copy.deepcopy(network.state_dict())) for done in training]


def assert_same_bits(state, other):
    assert state.keys() == other.keys()
    assert all(torch.equal(state[key], other[key]) for key in state)


# --- the batches of a round


@given(
    images=st.integers(1, 20),
    size=st.integers(1, 25),
    count=st.integers(0, 12),
    seed=st.integers(0, 9),
    number=st.integers(0, 9),
)
def test_batches_are_passes_without_replacement(images, size, count, seed, number):
    drawn = list(batches(images, size, count, seed, number))
    assert [len(batch) for batch in drawn] == [size] * count
    order = np.concatenate(drawn) if drawn else np.empty(0)
    for start in range(0, len(order), images):
        one_pass = order[start : start + images].tolist()
        assert len(set(one_pass)) == len(one_pass)
        assert set(one_pass) <= set(range(images))


def test_passes_are_reshuffled():
    first, second = batches(50, 50, 2, seed=0, number=0)
    assert first.tolist() != second.tolist()
    assert sorted(first) == sorted(second) == list(range(50))
    assert first.tolist() != list(range(50))


def test_batches_depend_on_the_seed_and_the_round_alone():
    def order(seed, number, count=6):
        return [batch.tolist() for batch in batches(20, 8, count, seed, number)]

    assert order(0, 3) == order(0, 3)
    assert order(0, 3) != order(0, 4)
    assert order(0, 3) != order(1, 3)
    assert order(0, 3, count=4) == order(0, 3)[:4]


# --- the rounds


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_one_round_on_the_seen_classes_and_then_as_many_as_asked_for(fabric, make_network, rounds):
    network = make_network()
    done = list(run(fabric, network, replace(ZSL, rounds=rounds)))
    assert [each.number for each in done] == list(range(rounds + 1))
    assert len(network.batches) == 4 + 5 * rounds
    assert {len(batch) for batch in network.batches} == {6}


def test_the_first_round_knows_the_seen_classes_only(fabric, make_network):
    network = make_network()
    done = next(run(fabric, network))
    assert (done.number, len(done.pseudo), done.changed) == (0, 0, 0)
    assert Counter(pair for batch in network.batches for pair in batch) == {
        (image, LABELS[image]): 2
        for image in range(N_TRAIN)  # 4 batches of 6 are 2 passes over 12 images
    }


@pytest.mark.parametrize("kind", ["features", "images"])
def test_each_round_trains_on_the_seen_classes_and_its_own_pseudo_labels(fabric, make_network, kind):
    network = make_network(kind)
    rounds = list(
        run(fabric, network, replace(ZSL, batches=9, seed=2), kind=kind)
    )  # 54 images: 3 passes over 12 + at most 6
    assert any(done.changed for done in rounds[2:])  # or the sets would not tell the rounds apart
    for done in rounds[1:]:
        start = 4 + 9 * (done.number - 1)
        trained = [pair for batch in network.batches[start : start + 9] for pair in batch]
        ours = list(zip(range(N_TRAIN), LABELS, strict=True))
        pseudo = list(zip(done.pseudo.images + N_TRAIN, done.pseudo.labels, strict=True))
        assert len(pseudo) > 0
        times = Counter(trained)
        assert set(times) == set(ours + pseudo)
        assert max(times.values()) - min(times.values()) <= 1  # each image once per pass


def test_the_loss_of_a_round_is_the_mean_over_its_batches(fabric, make_network):
    network = make_network()
    rounds = list(run(fabric, network))
    assert rounds[0].loss == pytest.approx(np.mean(network.losses[:4]))
    assert rounds[2].loss == pytest.approx(np.mean(network.losses[9:14]))


def test_the_loss_of_no_batches_is_no_number(fabric, make_network):
    network = make_network()
    before = copy.deepcopy(network.state_dict())
    rounds = list(run(fabric, network, replace(ZSL, rounds=1, initial_batches=0, batches=0)))
    assert np.isnan([done.loss for done in rounds]).all()
    assert_same_bits(network.state_dict(), before)


def test_pseudo_labels_are_fresh_predictions_on_the_pool(fabric, make_network):
    network = make_network()
    _, pool = inputs()
    last = PseudoLabels.none()
    expected = None
    for done in run(fabric, network):
        if expected is not None:
            assert np.array_equal(done.pseudo.images, expected.images)
            assert np.array_equal(done.pseudo.labels, expected.labels)
            assert done.changed == expected.changed_since(last)
            last = done.pseudo
        expected = select(predict(fabric, network, pool), ~SEEN, 2)  # with the weights this round left


def test_training_is_in_training_mode_and_prediction_is_not(fabric, make_network):
    network = make_network()
    list(run(fabric, network, replace(ZSL, rounds=2)))
    assert network.training_mode == [True] * 4 + [False] + [True] * 5 + [False] + [True] * 5


def test_the_state_of_adam_carries_over(fabric, make_network):
    network = make_network()
    optimizer = adam(network)
    steps = [
        int(optimizer.state[network.ensemble.layers[0].bias]["step"]) for _ in run(fabric, network, ZSL, optimizer)
    ]
    assert steps == [4, 9, 14, 19]


def test_every_step_is_one_of_adams_on_the_loss_of_its_batch(fabric, make_network):
    network, other = make_network(), make_network()
    list(run(fabric, network))
    train, pool = inputs()
    images = torch.cat([train[np.arange(N_TRAIN)], pool[np.arange(N_POOL)]])
    optimizer = adam(other)
    for batch in network.batches:
        optimizer.zero_grad()
        other(images[[image for image, _ in batch]], torch.tensor([label for _, label in batch])).backward()
        optimizer.step()
    assert_same_bits(network.state_dict(), other.state_dict())


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_order(fabric, make_network):
    states = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(states))  # which must not matter
        network = make_network()
        list(run(fabric, network, replace(ZSL, seed=seed)))
        states.append(network.state_dict())
    assert_same_bits(states[0], states[1])
    assert not torch.equal(states[0]["ensemble.layers.0.weight"], states[2]["ensemble.layers.0.weight"])


@pytest.mark.parametrize("schedule", [ZSL, GZSL], ids=["zsl", "gzsl"])
def test_the_order_of_the_pool_does_not_matter(fabric, make_network, schedule):
    network, other = make_network(), make_network()
    train, pool = inputs()
    order = np.random.default_rng(1).permutation(N_POOL)
    moved = ArrayInputs(pool[order].numpy())
    rounds = run(fabric, network, schedule)
    same = progressive_training(fabric, other, other, adam(other), train, LABELS, moved, schedule)
    for ours, theirs in zip(rounds, same, strict=True):
        assert np.array_equal(ours.pseudo.images, order[theirs.pseudo.images])
        assert np.array_equal(ours.pseudo.labels, theirs.pseudo.labels)
    for weight, expected in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.allclose(weight, expected)


@pytest.mark.parametrize("kind", ["features", "images"])
@pytest.mark.parametrize("schedule", [ZSL, GZSL], ids=["zsl", "gzsl"])
def test_going_on_after_any_round_gives_the_same_bits(fabric, make_network, schedule, kind):
    network = make_network(kind)
    whole = rounds_with_weights(run(fabric, network, schedule, kind=kind), network)
    for stop in range(schedule.rounds + 1):
        network = make_network(kind)
        optimizer = adam(network)
        training = run(fabric, network, schedule, optimizer, kind=kind)
        last = [next(training) for _ in range(stop + 1)][-1]
        weights, state = copy.deepcopy((network.state_dict(), optimizer.state_dict()))

        network = make_network(kind)
        network.load_state_dict(weights)
        optimizer = adam(network)
        optimizer.load_state_dict(state)
        rest = rounds_with_weights(run(fabric, network, schedule, optimizer, last, kind=kind), network)
        assert len(rest) == schedule.rounds - stop
        for (done, after), (expected, expected_after) in zip(rest, whole[stop + 1 :], strict=True):
            assert (done.number, done.loss, done.changed) == (expected.number, expected.loss, expected.changed)
            assert np.array_equal(done.pseudo.images, expected.pseudo.images)
            assert np.array_equal(done.pseudo.labels, expected.pseudo.labels)
            assert_same_bits(after, expected_after)


# --- GZSL


def test_pseudo_labels_are_for_unseen_classes_in_the_first_rounds_and_then_for_all(fabric, make_network):
    network = make_network()
    _, pool = inputs()
    expected = None
    for done in run(fabric, network, GZSL):
        if expected is not None:
            assert np.array_equal(done.pseudo.images, expected.images)
            assert np.array_equal(done.pseudo.labels, expected.labels)
            assert SEEN[done.pseudo.labels].any() == (done.number > 2)
        if done.number < 2:
            expected = select(predict(fabric, network, pool), ~SEEN, 4)
        else:
            expected = select(predict(fabric, network, pool, "probability"), np.ones(5, dtype=bool), 4)


@pytest.mark.parametrize("first_rounds", [0, 1, 7, None])
def test_how_many_rounds_are_the_first(fabric, make_network, first_rounds):
    schedule = replace(GZSL, first_rounds=first_rounds, gamma=-100.0)  # seen classes win as soon as they may
    network = make_network()
    _, pool = inputs()
    for number in (1, 2, 7, 8):
        pseudo = pseudo_labels(fabric, network, pool, schedule, number)
        assert SEEN[pseudo.labels].any() == (first_rounds is not None and number > first_rounds)


@pytest.mark.parametrize("rule", ["literal", "probability"])
def test_later_rounds_go_by_the_rule_and_its_gamma(fabric, make_network, rule):
    network = make_network()
    list(run(fabric, network, GZSL))  # so that some images of the pool are taken for seen classes, and some are not
    _, pool = inputs()
    share_of_seen = []
    for gamma in (-100.0, 0.0, 100.0):
        pseudo = pseudo_labels(fabric, network, pool, replace(GZSL, gzsl_rule=rule, gamma=gamma), 3)
        expected = select(predict(fabric, network, pool, rule, gamma), np.ones(5, dtype=bool), 4)
        assert np.array_equal(pseudo.images, expected.images)
        assert np.array_equal(pseudo.labels, expected.labels)
        share_of_seen.append(SEEN[pseudo.labels].mean())
    assert share_of_seen[0] == 1
    assert 0 < share_of_seen[1] < 1
    assert share_of_seen[2] == 0


# --- pieces of batches, and changes to them


def first_gradients(fabric, network, pieces, batch_size):
    """The gradients of the first batch."""
    train, pool = inputs("images")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    schedule = replace(ZSL, rounds=0, initial_batches=1, batch_size=batch_size, pieces=pieces)
    done = list(progressive_training(fabric, network, network, optimizer, train, LABELS, pool, schedule))
    return [parameter.grad for parameter in network.parameters()], done[0].loss


@pytest.mark.parametrize("batch_size", [1, 6, 7])
@pytest.mark.parametrize("pieces", [2, 3, 6, 100])
def test_pieces_add_up_to_the_gradients_of_a_whole_batch(fabric, make_network, pieces, batch_size):
    whole, loss = first_gradients(fabric, make_network("images"), 1, batch_size)
    network = make_network("images")
    parts, same_loss = first_gradients(fabric, network, pieces, batch_size)
    assert any(gradient.abs().max() > 1e-3 for gradient in whole)
    for ours, theirs in zip(parts, whole, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-7)
    assert same_loss == pytest.approx(loss, rel=1e-5)
    sizes = [len(batch) for batch in network.batches]
    assert len(sizes) == min(pieces, batch_size)
    assert sum(sizes) == batch_size
    assert max(sizes) - min(sizes) <= 1


def test_pieces_train_what_whole_batches_train(fabric, make_network):
    network, other = make_network("images"), make_network("images")
    list(run(fabric, network, kind="images"))
    list(run(fabric, other, replace(ZSL, pieces=4), kind="images"))
    for ours, theirs in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)


class Changes:
    """An augmentation that writes down what it is given, and what chance it has."""

    def __init__(self):
        self.seen: list[list[int]] = []
        self.drawn: list[float] = []

    def __call__(self, images, rng):
        self.seen.append((images.flatten(1)[:, 0] * 64).round().int().tolist())
        self.drawn.append(rng.random())
        images = images.clone()
        images.flatten(1)[:, 1] = self.drawn[-1]
        return images


def changed_run(fabric, network, changes, last=None, optimizer=None, schedule=ZSL):
    train, pool = inputs("images")
    optimizer = optimizer or adam(network)
    return progressive_training(fabric, network, network, optimizer, train, LABELS, pool, schedule, last, changes)


def test_every_training_batch_is_changed_and_nothing_that_is_predicted(fabric, make_network):
    network, changes = make_network("images"), Changes()
    predicted = []
    network.backbone.register_forward_hook(
        lambda module, given, _: None if module.training else predicted.append(given[0])
    )
    list(changed_run(fabric, network, changes))
    assert changes.seen == [[image for image, _ in batch] for batch in network.batches]
    assert len(changes.seen) == 4 + 3 * 5
    _, pool = inputs("images")
    assert len(predicted) == 3
    assert all(torch.equal(images, pool[np.arange(N_POOL)]) for images in predicted)
    assert len(set(changes.drawn)) == len(changes.drawn)  # no round has the chance of another


def test_a_change_is_what_is_trained_on(fabric, make_network):
    network, other = make_network("images"), make_network("images")
    list(changed_run(fabric, network, lambda images, rng: torch.zeros_like(images), schedule=replace(ZSL, rounds=0)))
    list(changed_run(fabric, other, None, schedule=replace(ZSL, rounds=0)))
    assert all(image == 0 for batch in network.batches for image, _ in batch)
    assert not torch.equal(network.ensemble.layers[0].weight, other.ensemble.layers[0].weight)


@pytest.mark.parametrize("stop", [0, 1, 2])
def test_chance_is_the_same_after_resuming(fabric, make_network, stop):
    network, changes = make_network("images"), Changes()
    whole = rounds_with_weights(changed_run(fabric, network, changes), network)
    network = make_network("images")
    optimizer = adam(network)
    training = changed_run(fabric, network, Changes(), optimizer=optimizer)
    last = [next(training) for _ in range(stop + 1)][-1]
    weights, state = copy.deepcopy((network.state_dict(), optimizer.state_dict()))

    network, rest = make_network("images"), Changes()
    network.load_state_dict(weights)
    optimizer = adam(network)
    optimizer.load_state_dict(state)
    resumed = rounds_with_weights(changed_run(fabric, network, rest, last, optimizer), network)
    assert rest.drawn == changes.drawn[4 + 5 * stop :]
    assert rest.seen == changes.seen[4 + 5 * stop :]
    for (_, ours), (_, theirs) in zip(resumed, whole[stop + 1 :], strict=True):
        assert_same_bits(ours, theirs)


@pytest.mark.parametrize(
    ("shape", "device", "most"),
    [((4,), "cpu", 256), ((3, 224, 224), "cpu", 8), ((3, 224, 224), "cuda", 66), ((3, 5000, 5000), "cuda", 1)],
)
def test_how_many_images_go_through_a_backbone_at_once(shape, device, most):
    class Large:
        sample_shape = shape

    class Somewhere:
        pass

    Somewhere.device = torch.device(device)
    assert images_at_once(Large(), Somewhere()) == most


# --- with a backbone, through PrEN

TINY = {"heads": 3, "hidden": (8,), "rounds": 1, "initial_batches": 2, "batches": 2, "batch_size": 8}


def fit(problem, **params):
    return PrEN(**(TINY | params)).fit(problem)


def largest_moves(before, after):
    """How far the weights of the backbone and of the heads moved."""
    moves = {"backbone": 0.0, "ensemble": 0.0}
    old = dict(before.network_.named_parameters())
    for name, weight in after.network_.named_parameters():
        part = name.split(".")[0]
        moves[part] = max(moves[part], (weight - old[name]).abs().max().item())
    return moves


@pytest.mark.parametrize("backbone_lr", [None, 1e-5])
def test_the_backbone_has_its_own_learning_rate(make_problem, backbone_lr):
    problem = make_problem(shape=(1, 4, 4))
    one_step = {"initial_batches": 1, "rounds": 0, "lr": 1e-3, "backbone_lr": backbone_lr}
    before, after = fit(problem, **(one_step | {"initial_batches": 0})), fit(problem, **one_step)
    moves = largest_moves(before, after)  # Adam's first step goes as far as the learning rate
    assert moves["ensemble"] == pytest.approx(1e-3, rel=0.01)
    assert moves["backbone"] == pytest.approx(backbone_lr or 1e-3, rel=0.02)


def test_a_frozen_backbone_stays_while_the_heads_learn(make_problem):
    problem = make_problem(shape=(1, 4, 4))
    before = fit(problem, initial_batches=0, rounds=0)
    moves = largest_moves(before, fit(problem, frozen=True))
    assert moves["backbone"] == 0
    assert moves["ensemble"] > 1e-3
    assert largest_moves(before, fit(problem, frozen=False))["backbone"] > 1e-3


def test_a_frozen_backbone_trains_the_heads_as_its_features_would(make_problem):
    problem = make_problem(shape=(1, 4, 4))
    model = fit(problem, frozen=True)
    backbone, _ = create_backbone("small-cnn", (1, 4, 4), seed=0)
    with torch.inference_mode():
        train, pool = (ArrayInputs(backbone(x[np.arange(len(x))]).numpy()) for x in (problem.train, problem.pool))
    on_features = fit(replace(problem, train=train, pool=pool, backbone=None))
    for ours, theirs in zip(
        model.network_.ensemble.parameters(), on_features.network_.ensemble.parameters(), strict=True
    ):
        assert torch.allclose(ours, theirs, atol=1e-6)
    assert np.allclose(model.scores(problem.pool), on_features.scores(pool), atol=1e-5)


def test_a_frozen_backbone_is_in_evaluation_mode(make_problem, monkeypatch):
    class Forgetful(nn.Module):
        num_features = 16

        def __init__(self, channels):
            super().__init__()
            self.dropout = nn.Dropout(0.9)

        def forward(self, images):
            return self.dropout(images.flatten(1))

    monkeypatch.setattr(backbones, "SmallCNN", Forgetful)
    problem = make_problem(shape=(1, 4, 4))
    model = fit(problem, frozen=True, backbone="small-cnn")
    train, pool = (ArrayInputs(x[np.arange(len(x))].flatten(1).numpy()) for x in (problem.train, problem.pool))
    on_features = fit(replace(problem, train=train, pool=pool, backbone=None))
    assert np.allclose(model.scores(problem.pool), on_features.scores(pool), atol=1e-5)


@pytest.mark.parametrize(("rule", "gamma_of_the_rounds"), [("probability", 0.0), ("literal", 0.3)])
@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_pren_fills_in_the_schedule(make_problem, setting, rule, gamma_of_the_rounds):
    model = PrEN(**TINY, rho=0.5, n_max=20, gzsl_rule=rule, gamma=0.3, first_rounds=7, pieces=4, seed=9)
    assert model._schedule(make_problem(n_seen=4, per_class=6, setting=setting)) == Schedule(
        rounds=1,
        initial_batches=2,
        batches=2,
        batch_size=8,
        pieces=4,
        per_class=3,
        first_rounds=None if setting == "zsl" else 7,
        gzsl_rule=rule,
        gamma=gamma_of_the_rounds,
        seed=9,
    )


def test_only_what_has_vanished_is_forgotten():
    weight = nn.Parameter(torch.zeros(6))
    optimizer = torch.optim.Adam([weight])
    weight.grad = torch.ones(6)
    optimizer.step()
    values = torch.tensor([1e-40, -1e-31, 1e-29, -1e-29, 0.0, -3.0])
    optimizer.state[weight]["exp_avg"].copy_(values)
    squares = optimizer.state[weight]["exp_avg_sq"].clone()
    progressive.forget_traces(optimizer)
    assert optimizer.state[weight]["exp_avg"].tolist() == [float(v) if abs(v) > 1e-30 else 0.0 for v in values]
    assert optimizer.state[weight]["exp_avg_sq"].equal(squares)


def test_forgetting_changes_no_weight(make_problem, monkeypatch):
    """A head with dead units, trained until their averages would be denormal numbers."""
    settings = {**TINY, "initial_batches": 1000, "rounds": 0, "lr": 0.02, "hidden": (16,)}
    with_forgetting = PrEN(**settings).fit(make_problem())
    monkeypatch.setattr(progressive, "forget_traces", lambda optimizer: None)
    without = PrEN(**settings).fit(make_problem())

    def denormal(model):
        averages = torch.cat(
            [v.flatten().abs() for e in model._adam_state.values() for k, v in e.items() if k == "exp_avg"]
        )
        return bool(((averages > 0) & (averages < torch.finfo(torch.float32).tiny)).any())

    assert denormal(without)  # or the test would show nothing
    assert not denormal(with_forgetting)
    for ours, theirs in zip(with_forgetting.network_.parameters(), without.network_.parameters(), strict=True):
        assert ours.equal(theirs)
