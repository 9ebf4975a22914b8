"""Pseudo-labels against a plain loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pren.core.pseudo import PseudoLabels, best_candidate, per_class, top_per_class


def labels_of(*pairs):
    return PseudoLabels(
        np.array([i for i, _ in pairs], dtype=np.int64), np.array([c for _, c in pairs], dtype=np.int64)
    )


def pairs_of(pseudo):
    return list(zip(pseudo.images.tolist(), pseudo.labels.tolist(), strict=True))


def select(scores, candidates, top, last=None):
    return top_per_class(scores, candidates, top, last or PseudoLabels.none())


def best_by_loops(scores, candidates):
    predicted = []
    for row in scores:
        best = None
        for c, score in enumerate(row):
            if candidates[c] and (best is None or score > row[best]):
                best = c
        predicted.append(best)
    return predicted


def select_by_loops(scores, candidates, top):
    predicted = best_by_loops(scores, candidates)
    chosen = []
    for c in range(scores.shape[1]):
        mine = [i for i, label in enumerate(predicted) if label == c]
        mine.sort(key=lambda i: scores[i, c], reverse=True)
        chosen += [(i, c) for i in mine[:top]]
    return chosen


@st.composite
def selections(draw):
    images, classes = draw(st.integers(0, 25)), draw(st.integers(1, 5))
    # All different, so that nothing is left to the order of the pool.
    places = np.random.default_rng(draw(st.integers(0, 10**6))).permutation(images * classes)
    scores = places.reshape(images, classes) / max(places.size, 1) - 0.3
    candidates = draw(arrays(bool, classes).filter(lambda mask: mask.any()))
    return scores, candidates, draw(st.integers(1, 8))


@given(selections())
def test_the_selection_is_that_of_the_loop(selection):
    pseudo = select(*selection)
    assert pairs_of(pseudo) == select_by_loops(*selection)
    assert pseudo.images.dtype == pseudo.labels.dtype == np.int64
    assert len(pseudo) == len(pseudo.images)


@given(selections())
def test_the_best_candidate_is_that_of_the_loop(selection):
    scores, candidates, _ = selection
    best = best_candidate(scores, candidates)
    assert best.tolist() == best_by_loops(scores, candidates)
    assert best.dtype == np.int64


def test_of_equal_candidates_the_first_is_best():
    scores = np.array([[2.0, 1.0, 1.0], [2.0, 0.0, 1.0]])
    assert best_candidate(scores, np.array([False, True, True])).tolist() == [1, 2]


@given(selections())
def test_the_selection_takes_the_best_of_those_predicted_as_each_class(selection):
    scores, candidates, top = selection
    pseudo = select(scores, candidates, top)
    assert len(set(pseudo.images.tolist())) == len(pseudo)
    assert candidates[pseudo.labels].all()
    predicted = np.where(candidates, scores, -np.inf).argmax(axis=1)
    assert np.array_equal(predicted[pseudo.images], pseudo.labels)
    for c in range(scores.shape[1]):
        mine, chosen = np.flatnonzero(predicted == c), pseudo.images[pseudo.labels == c]
        assert len(chosen) == (min(top, len(mine)) if candidates[c] else 0)
        left_out = np.setdiff1d(mine, chosen)
        if len(chosen) and len(left_out):
            assert scores[chosen, c].min() > scores[left_out, c].max()


@given(selections(), selections())
def test_every_round_selects_afresh(selection, other):
    last = select(*other)
    assert pairs_of(select(*selection, last)) == pairs_of(select(*selection))


@given(selections(), st.randoms(use_true_random=False))
def test_the_order_of_the_pool_does_not_matter(selection, random):
    scores, candidates, top = selection
    order = list(range(len(scores)))
    random.shuffle(order)
    moved = select(scores[order], candidates, top)
    assert [(order[i], c) for i, c in pairs_of(moved)] == pairs_of(select(scores, candidates, top))


def test_an_image_that_another_class_wins_is_not_taken():
    scores = np.array([[0.9, 0.8], [0.9, 0.7], [0.2, 0.3]])
    # Images 0 and 1 have the highest scores for class 1 too, but are predicted as class 0.
    assert pairs_of(select(scores, np.array([True, True]), 1)) == [(0, 0), (2, 1)]


def test_a_class_that_is_no_candidate_neither_wins_nor_gets_images():
    scores = np.array([[5.0, 0.1, 0.2], [5.0, 0.3, 0.2]])
    assert pairs_of(select(scores, np.array([False, True, True]), 3)) == [(1, 1), (0, 2)]


def test_equal_scores_never_make_more_than_the_limit():
    assert pairs_of(select(np.ones((5, 1)), np.array([True]), 2)) == [(0, 0), (1, 0)]


def test_an_empty_pool_has_no_pseudo_labels():
    pseudo = select(np.empty((0, 3)), np.array([False, True, True]), 2)
    assert len(pseudo) == 0
    assert pseudo.images.dtype == pseudo.labels.dtype == np.int64


@pytest.mark.parametrize(
    ("images_per_class", "expected"),
    [
        (11788 / 200, 15),  # CUB: 14.7
        (60, 15),
        (20, 5),  # SUN
        (37322 / 50, 20),  # AWA2: 186.6, but 20 at most
        (80, 20),
        (82, 20),
        (9.9, 2),  # 2.475
        (10, 3),  # 2.5: halves go up
        (14, 4),  # 3.5, which Python's own rounding takes to 4, as it takes 2.5 to 2
        (1, 1),  # 0.25, but at least 1
    ],
)
def test_images_per_class(images_per_class, expected):
    assert per_class(images_per_class, 0.25, 20) == expected


@pytest.mark.parametrize(("rho", "n_max", "expected"), [(0.0, 20, 1), (0.5, 20, 10), (1.0, 20, 20), (1.0, 7, 7)])
def test_share_and_limit(rho, n_max, expected):
    assert per_class(20, rho, n_max) == expected


def test_what_changed_is_what_was_not_there_before():
    before = labels_of((1, 0), (2, 0), (3, 1))
    after = labels_of((3, 1), (2, 1), (4, 1), (1, 0))  # 2 got another label, 4 is new
    assert after.changed_since(before) == 2
    assert before.changed_since(after) == 1
    assert after.changed_since(after) == 0
    assert after.changed_since(PseudoLabels.none()) == 4
    assert PseudoLabels.none().changed_since(after) == 0


def test_none_is_empty():
    assert len(PseudoLabels.none()) == 0
    assert PseudoLabels.none().images.dtype == PseudoLabels.none().labels.dtype == np.int64
