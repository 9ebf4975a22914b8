"""The order of training, and what a batch holds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pren.core.pseudo import PseudoLabels
from pren.problem import UNKNOWN
from pren.problem.inputs import ArrayInputs
from pren.training.batches import TrainingSet, batches, mixed_batches

CPU = torch.device("cpu")


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


@given(train=st.integers(1, 30), pool=st.integers(1, 30), size=st.integers(2, 12))
def test_half_of_a_mixed_batch_comes_from_the_pool(train, pool, size):
    drawn = list(mixed_batches(train, pool, size, seed=0, epoch=1))
    ours = [place for batch in drawn for place in batch if place < train]
    theirs = [place - train for batch in drawn for place in batch if place >= train]
    assert all((batch >= train).sum() == size // 2 for batch in drawn)
    assert all(len(batch) == size for batch in drawn)
    assert set(ours) == set(range(train))  # one pass over the labelled images
    assert len(ours) - train < size
    assert set(theirs) <= set(range(pool))
    assert len(set(theirs)) == min(pool, len(theirs))  # the pool in passes, too


def test_every_epoch_has_an_order_of_its_own():
    orders = {tuple(next(mixed_batches(50, 50, 80, 0, epoch)).tolist()) for epoch in range(1, 5)}
    assert len(orders) == 4
    for order in orders:  # the pool is not shuffled as the labelled images are
        assert order[:40] != tuple(place - 50 for place in order[40:])


# --- a training set


@pytest.fixture
def images():
    """Three labelled images and five of the pool, two of them with pseudo-labels."""
    train, pool = np.arange(6).reshape(3, 2), 10 + np.arange(10).reshape(5, 2)
    pseudo = PseudoLabels(np.array([4, 1]), np.array([7, 8]))
    return TrainingSet(ArrayInputs(train), np.array([0, 1, 2]), ArrayInputs(pool), pseudo)


def test_labelled_images_come_first_and_then_those_with_pseudo_labels(images):
    assert len(images) == 5
    x, y = images.read(np.arange(5), CPU)
    assert x.tolist() == [[0, 1], [2, 3], [4, 5], [18, 19], [12, 13]]
    assert y.tolist() == [0, 1, 2, 7, 8]
    assert x.dtype == torch.float32


@given(st.lists(st.integers(0, 4), max_size=9))
def test_every_image_has_its_own_label(places):
    train, pool = np.arange(3.0)[:, None], 10 + np.arange(5.0)[:, None]
    pseudo = PseudoLabels(np.array([4, 1]), np.array([7, 8]))
    images = TrainingSet(ArrayInputs(train), np.array([0, 1, 2]), ArrayInputs(pool), pseudo)
    x, y = images.read(np.array(places, dtype=np.int64), CPU)
    expected = [[(0, 0), (1, 1), (2, 2), (14, 7), (11, 8)][place] for place in places]
    assert sorted(zip(x[:, 0].tolist(), y.tolist(), strict=True)) == sorted(expected)


def test_a_whole_pool_has_unknown_classes(images):
    everything = TrainingSet.with_pool(images.train, images.labels, images.pool)
    assert len(everything) == 8
    x, y = everything.read(np.array([7, 0, 3]), CPU)
    assert x.tolist() == [[0, 1], [18, 19], [10, 11]]
    assert y.tolist() == [0, UNKNOWN, UNKNOWN]


def test_a_batch_is_changed_with_the_chance_that_is_given(images):
    def augment(x, rng):
        return x + rng.integers(100, 200)

    chance = np.random.default_rng(3)
    changed = TrainingSet(images.train, images.labels, images.pool, images.pseudo, augment, chance)
    same = np.random.default_rng(3)
    for _ in range(2):
        (x, y), (plain, labels) = (each.read(np.array([0, 4]), CPU) for each in (changed, images))
        assert torch.equal(x, plain + same.integers(100, 200))
        assert torch.equal(y, labels)
