"""PrEN's learner under Algorithm 1, on a problem small enough to follow image by image."""

import copy
from collections import Counter

import numpy as np
import pytest
import torch

from pren.core.progressive import Plan, progressive_training
from pren.core.pseudo import PseudoLabels, top_per_class
from pren.problem.inputs import ArrayInputs
from pren.training import chunks
from pren.training.learner import ProgressiveLearner

SEEN = np.array([True, True, False, False, False])
EVERYTHING = np.ones(5, dtype=bool)
ZSL = Plan(rounds=3, per_class=2, unseen=~SEEN, first_rounds=None)
GZSL = Plan(rounds=4, per_class=4, unseen=~SEEN, first_rounds=2)
BOTH = pytest.mark.parametrize("plan", [ZSL, GZSL], ids=["zsl", "gzsl"])
KINDS = pytest.mark.parametrize("kind", ["features", "images"])


def adam(network):
    return torch.optim.Adam(network.parameters(), lr=0.01)


@pytest.fixture
def make_learner(fabric, make_inputs, labels):
    """Build a learner of a network: 4 batches of 6 images, then 5 in every round."""

    def build(network, kind="features", pool=None, **options):
        train, usual = make_inputs(kind)
        sizes = {"initial_batches": 4, "batches": 5, "batch_size": 6}
        return ProgressiveLearner(fabric, network, adam, train, labels, pool or usual, **{**sizes, **options})

    return build


def run(learner, plan=ZSL, last=None):
    return progressive_training(learner, top_per_class, plan, last)


def with_weights(training, network):
    return [(done, copy.deepcopy(network.state_dict())) for done in training]


# --- training


def test_the_first_round_knows_the_seen_classes_only(make_network, make_learner, labels):
    network = make_network()
    loss = make_learner(network).train(PseudoLabels.none(), 0)
    assert Counter(pair for batch in network.batches for pair in batch) == {
        (image, labels[image]): 2
        for image in range(12)  # 4 batches of 6 are 2 passes over 12 images
    }
    assert loss == pytest.approx(np.mean(network.losses))


@KINDS
def test_a_round_trains_on_the_seen_classes_and_its_own_pseudo_labels(make_network, make_learner, labels, kind):
    network = make_network(kind)
    learner = make_learner(network, kind, batches=9)  # 54 images: 3 passes over 12 + 5
    ours = list(zip(range(12), labels, strict=True))
    for number, chosen in enumerate(([(3, 2), (7, 2), (0, 3), (1, 4), (2, 4)], [(3, 4), (9, 3), (0, 1)]), start=1):
        network.batches.clear()
        images, classes = np.array(chosen).T
        learner.train(PseudoLabels(images, classes), number)
        assert [len(batch) for batch in network.batches] == [6] * 9
        times = Counter(pair for batch in network.batches for pair in batch)
        assert set(times) == set(ours + [(12 + image, label) for image, label in chosen])
        assert max(times.values()) - min(times.values()) <= 1  # each image once per pass


def test_every_round_has_an_order_of_its_own(make_network, make_learner):
    network = make_network()
    learner = make_learner(network)
    for number in (1, 2):
        learner.train(PseudoLabels.none(), number)
    assert network.batches[:5] != network.batches[5:]


def test_training_is_in_training_mode_and_scoring_is_not(make_network, make_learner):
    network = make_network()
    list(run(make_learner(network), Plan(2, 2, ~SEEN, None)))
    assert network.training_mode == [True] * 4 + [False] + [True] * 5 + [False] + [True] * 5


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_order(make_network, make_learner, same_bits):
    networks = []
    for seed in (0, 0, 1):
        networks.append(make_network())
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(len(networks))  # which must not matter
            list(run(make_learner(networks[-1], seed=seed)))
    first, again, other = networks
    assert same_bits(first.state_dict(), again.state_dict())
    assert not torch.equal(first.ensemble.layers[0].weight, other.ensemble.layers[0].weight)


# --- scoring


@pytest.mark.parametrize("rule", ["votes", "literal", "probability"])
def test_the_pool_is_scored_as_the_network_scores(make_network, make_learner, make_inputs, rule):
    """Whoever exports the network and calls it gets the scores that training goes by."""
    network = make_network(rule=rule)
    learner = make_learner(network, **({} if rule == "votes" else {"rule": rule}))
    learner.train(PseudoLabels.none(), 0)
    _, pool = make_inputs()
    scores = learner.score(~SEEN if rule == "votes" else EVERYTHING)
    with torch.inference_mode():
        assert np.array_equal(scores, network(pool[np.arange(20)]).numpy())
    assert scores.dtype == np.float64


@pytest.mark.parametrize("rule", ["literal", "probability"])
def test_gamma_is_taken_off_seen_classes_where_they_are_candidates(make_network, make_learner, rule):
    network = make_network()
    plain, calibrated = (make_learner(network, rule=rule, gamma=gamma) for gamma in (0.0, 0.1))
    taken_off = plain.score(EVERYTHING) - calibrated.score(EVERYTHING)
    assert np.allclose(taken_off, 0.1 * SEEN, rtol=0, atol=1e-12)  # in double precision
    assert np.array_equal(plain.score(~SEEN), calibrated.score(~SEEN))
    assert not np.allclose(plain.score(~SEEN), plain.score(EVERYTHING))


@pytest.mark.parametrize("rule", ["literal", "probability"])
def test_gamma_decides_between_seen_and_unseen_classes(make_network, make_learner, rule):
    network = make_network()
    list(run(make_learner(network), GZSL))  # so that some images of the pool are taken for seen classes, some are not
    shares = []
    for gamma in (-100.0, 0.0, 100.0):
        scores = make_learner(network, rule=rule, gamma=gamma).score(EVERYTHING)
        shares.append(SEEN[top_per_class(scores, EVERYTHING, 4, PseudoLabels.none()).labels].mean())
    assert shares[0] == 1
    assert 0 < shares[1] < 1
    assert shares[2] == 0


def test_the_pool_is_scored_in_chunks(make_network, make_learner, monkeypatch):
    network = make_network()
    whole = make_learner(network).score(~SEEN)
    sizes = []
    network.backbone.register_forward_hook(lambda module, given, _: sizes.append(len(given[0])))
    monkeypatch.setattr(chunks, "CHUNK_NUMBERS", 3 * 8 * 9)  # heads x the widest layer x images
    assert np.allclose(make_learner(network).score(~SEEN), whole, atol=1e-6)
    assert sizes == [9, 9, 2]


# --- all of it


@BOTH
def test_pseudo_labels_are_fresh_predictions_on_the_pool(make_network, make_learner, make_inputs, plan):
    network = make_network()
    _, pool = make_inputs()
    expected = PseudoLabels.none()
    for done in run(make_learner(network), plan):
        assert np.array_equal(done.pseudo.images, expected.images)
        assert np.array_equal(done.pseudo.labels, expected.labels)
        general = plan is GZSL and done.number >= 2
        with torch.inference_mode():  # with the weights that this round left
            scores = network.eval().scores(pool[np.arange(20)], "probability" if general else "votes").numpy()
        expected = top_per_class(scores, EVERYTHING if general else ~SEEN, plan.per_class, PseudoLabels.none())
        assert SEEN[expected.labels].any() == general


@BOTH
def test_the_order_of_the_pool_does_not_matter(make_network, make_learner, make_inputs, plan, same_bits):
    network, other = make_network(), make_network()
    _, pool = make_inputs()
    order = np.random.default_rng(1).permutation(20)
    moved = ArrayInputs(pool[order].numpy())
    rounds, same = run(make_learner(network), plan), run(make_learner(other, pool=moved), plan)
    for ours, theirs in zip(rounds, same, strict=True):
        assert np.array_equal(ours.pseudo.images, order[theirs.pseudo.images])
        assert np.array_equal(ours.pseudo.labels, theirs.pseudo.labels)
    assert same_bits(network.state_dict(), other.state_dict())  # the same images in the same batches


@KINDS
@BOTH
def test_going_on_after_any_round_gives_the_same_bits(make_network, make_learner, plan, kind, same_bits):
    network = make_network(kind)
    learner = make_learner(network, kind)
    whole, states = [], []
    for done in run(learner, plan):
        whole.append((done, copy.deepcopy(network.state_dict())))
        states.append(copy.deepcopy(learner.adam_state()))
    for stop, ((last, weights), state) in enumerate(zip(whole, states, strict=True)):
        network = make_network(kind)
        network.load_state_dict(weights)
        learner = make_learner(network, kind)
        learner.load_adam(state)
        rest = with_weights(run(learner, plan, last), network)
        assert len(rest) == plan.rounds - stop
        for (done, after), (expected, expected_after) in zip(rest, whole[stop + 1 :], strict=True):
            assert (done.number, done.figures) == (expected.number, expected.figures)
            assert np.array_equal(done.pseudo.images, expected.pseudo.images)
            assert np.array_equal(done.pseudo.labels, expected.pseudo.labels)
            assert same_bits(after, expected_after)


# --- changes to the images of a batch


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


def test_every_training_batch_is_changed_and_nothing_that_is_scored(make_network, make_learner, make_inputs):
    network, changes = make_network("images"), Changes()
    scored = []
    network.backbone.register_forward_hook(
        lambda module, given, _: None if module.training else scored.append(given[0])
    )
    list(run(make_learner(network, "images", augment=changes)))
    assert changes.seen == [[image for image, _ in batch] for batch in network.batches]
    assert len(changes.seen) == 4 + 3 * 5
    _, pool = make_inputs("images")
    assert len(scored) == 3
    assert all(torch.equal(images, pool[np.arange(20)]) for images in scored)
    assert len(set(changes.drawn)) == len(changes.drawn)  # no round has the chance of another


@pytest.mark.parametrize("stop", [0, 1, 2])
def test_chance_is_the_same_after_resuming(make_network, make_learner, stop, same_bits):
    network, changes = make_network("images"), Changes()
    learner = make_learner(network, "images", augment=changes)
    whole = []
    for done in run(learner):
        whole.append(copy.deepcopy(network.state_dict()))
        if done.number == stop:
            last, state = done, copy.deepcopy(learner.adam_state())

    network, rest = make_network("images"), Changes()
    network.load_state_dict(whole[stop])
    learner = make_learner(network, "images", augment=rest)
    learner.load_adam(state)
    resumed = with_weights(run(learner, ZSL, last), network)
    assert rest.drawn == changes.drawn[4 + 5 * stop :]
    assert rest.seen == changes.seen[4 + 5 * stop :]
    assert all(same_bits(ours, theirs) for (_, ours), theirs in zip(resumed, whole[stop + 1 :], strict=True))
