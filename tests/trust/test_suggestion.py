"""Which images to label next: against a plain loop, and what it must do with clusters, given labels and large pools."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.trust import suggestion
from pren.trust.suggestion import suggest


def slow_value(features, doubt, chosen, labelled):
    """How well all images without a label are stood for, one after the other."""
    left = [place for place in range(len(features)) if place not in labelled]

    def square(i, j):
        return sum((features[i] - features[j]) ** 2)

    near = 0.5 * np.median([sorted(square(i, j) for j in left)[min(10, len(left) - 1)] for i in left]) or 1.0
    total = 0.0
    for i in left:
        below, same = sum(doubt[j] < doubt[i] for j in left), sum(doubt[j] == doubt[i] for j in left)
        total += (below + (same + 1) / 2) * max(np.exp(-square(i, s) / near) for s in [*labelled, *chosen])
    return total


@given(st.integers(1, 13), st.integers(1, 4), st.integers(0, 3), st.integers(0, 999))
def test_each_is_the_best_that_a_loop_finds(n, count, labelled, seed):
    rng = np.random.default_rng(seed)
    features, doubt = rng.normal(size=(n, 2)), rng.integers(0, 4, n).astype(float)
    known = rng.permutation(n)[: min(labelled, n - 1)].tolist()
    chosen = suggest(features, doubt, count, np.array(known, dtype=np.int64)).tolist()
    assert len(chosen) == min(count, n - len(known))
    for step, place in enumerate(chosen):
        before = chosen[:step]
        others = [other for other in range(n) if other not in known + before]
        best = max(slow_value(features, doubt, [*before, other], known) for other in others)
        assert slow_value(features, doubt, [*before, place], known) == pytest.approx(best, rel=1e-5)


def test_only_some_may_be_chosen():
    rng = np.random.default_rng(0)
    features, doubt = rng.normal(size=(30, 3)), rng.random(30)
    among, given_places = np.sort(rng.permutation(30)[:20]), np.array([3, 4])
    kept = np.union1d(among, given_places)
    alone = suggest(features[kept], doubt[kept], 6, np.searchsorted(kept, given_places))
    assert suggest(features, doubt, 6, given_places, among).tolist() == kept[alone].tolist()


@pytest.fixture
def clusters():
    """Four heaps of 5, 10, 15 and 20 images far from each other, and the heap of each image."""
    rng = np.random.default_rng(0)
    heap = rng.permutation(np.repeat(np.arange(4), [5, 10, 15, 20]))
    return 100 * np.eye(4)[heap] + rng.normal(size=(50, 4)), heap


def test_every_heap_gets_one_and_the_largest_comes_first(clusters):
    features, heap = clusters
    assert heap[suggest(features, np.zeros(50), 4)].tolist() == [3, 2, 1, 0]


def test_the_doubtful_heap_comes_first(clusters):
    features, heap = clusters
    assert heap[suggest(features, np.where(heap == 1, 2.0, 1.0), 1)] == [1]


@pytest.mark.parametrize("scale", [1e-30, 1e25, 1e150])
def test_any_scale_of_features_will_do(clusters, scale):
    features, _ = clusters
    expected = suggest(features, np.zeros(50), 6).tolist()
    assert suggest(features * scale, np.zeros(50), 6).tolist() == expected


def test_any_scale_of_doubt_will_do(clusters):
    features, _ = clusters
    doubt = np.random.default_rng(1).normal(size=50)
    assert np.array_equal(suggest(features, doubt, 9), suggest(7 * features, np.exp(3 * doubt), 9))


def test_an_image_with_a_label_stands_for_its_heap(clusters):
    features, heap = clusters
    labelled = np.flatnonzero(heap == 3)[:6]
    chosen = suggest(features, np.zeros(50), 3, labelled)
    assert heap[chosen].tolist() == [2, 1, 0]
    assert not set(suggest(features, np.zeros(50), 50, labelled)) & set(labelled)


def test_there_are_no_more_than_there_are():
    assert sorted(suggest(np.zeros((3, 2)), np.zeros(3), 9)) == [0, 1, 2]
    assert len(suggest(np.zeros((3, 2)), np.zeros(3), 9, np.arange(3))) == 0
    assert suggest(np.zeros((1, 2)), np.zeros(1), 1).tolist() == [0]


def test_a_large_pool_is_thinned_out(clusters, monkeypatch):
    features, heap = clusters
    monkeypatch.setattr(suggestion, "MOST_COMPARED", 20)
    chosen = suggest(features, np.zeros(50), 99, np.array([1, 4]))
    assert len(chosen) == 16  # every third of 48
    assert set(heap[chosen]) == {0, 1, 2, 3}
