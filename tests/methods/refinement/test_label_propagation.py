"""Label propagation: every formula against a loop, what it mends, and that order means nothing."""

import math

import numpy as np
import pytest

from pren.methods.formulas import on_arrays
from pren.methods.refinement import REFINEMENTS, LabelPropagation
from pren.methods.refinement import label_propagation as module
from pren.methods.refinement.base import DECIDED
from pren.methods.refinement.label_propagation import (
    KEPT,
    LINKS,
    as_matrix,
    class_weights,
    find_anchors,
    nearest_in_blocks,
    spread,
    weights_of,
)


def links_of(x, anchors, width):
    """The weights of all anchors for one image, by a loop."""
    squares = [sum((x - anchor) ** 2) for anchor in anchors]
    order = sorted(range(len(anchors)), key=squares.__getitem__)
    far = squares[order[LINKS]] if len(anchors) > LINKS else math.inf
    found = np.zeros(len(anchors))
    for place in order[:LINKS]:
        found[place] = math.exp(-squares[place] / width) - math.exp(-far / width)
    return found / found.sum()


@pytest.mark.parametrize("count", [1, 2, LINKS, LINKS + 1, 9])
def test_links_are_those_of_a_loop(count, monkeypatch):
    monkeypatch.setattr("pren.methods.refinement.base.BLOCK_NUMBERS", 20)
    rng = np.random.default_rng(count)
    X, anchors = rng.normal(size=(7, 2)), rng.normal(size=(count, 2))
    places, distances = nearest_in_blocks(X, anchors)
    found = as_matrix(places, on_arrays(weights_of, distances, np.array([1.5])), count).toarray()
    assert np.allclose(found, [links_of(x, anchors, 1.5) for x in X])


def test_links_do_not_jump_where_anchors_change_places():
    """An image between the third and the fourth of four anchors."""
    anchors = np.array([[0.0], [1.0], [-3.0], [5.0]])
    one, other = (
        as_matrix(places, on_arrays(weights_of, distances, np.array([1.0])), 4).toarray()
        for places, distances in (nearest_in_blocks(np.array([[x]]), anchors) for x in (1 - 1e-9, 1 + 1e-9))
    )
    assert np.allclose(one, other, atol=1e-6)


def test_anchors_that_are_all_as_near_count_alike():
    anchors = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    _, distances = nearest_in_blocks(np.zeros((1, 2)), anchors)
    assert np.allclose(on_arrays(weights_of, distances, np.ones(1)), 1 / LINKS)


def test_shares_are_those_of_a_loop(clusters, monkeypatch):
    monkeypatch.setattr("pren.methods.refinement.base.BLOCK_NUMBERS", 20)
    pool, _ = clusters((3, 2, 2, 2))
    pool.scores[4] = 0.1  # which says nothing
    for row, found in zip(pool.scores[:, 1:], pool.shares(), strict=True):
        mean = sum(row) / 4
        spread = math.sqrt(sum((score - mean) ** 2 for score in row) / 4)
        raised = [math.exp(DECIDED * (score - mean) / spread) if spread > 1e-9 else 1.0 for score in row]
        assert np.allclose(found, [value / sum(raised) for value in raised])


def test_labels_are_spread_as_in_a_loop():
    rng = np.random.default_rng(0)
    links, held = rng.dirichlet(np.ones(4), size=6), rng.dirichlet(np.ones(4), size=3)
    start, labels = rng.dirichlet(np.ones(3), size=6), np.array([0, 1, 0])
    A = np.zeros((4, 3))
    for _ in range(300):
        F = [[(1 - KEPT) * links[i] @ A[:, c] + KEPT * start[i, c] for c in range(3)] for i in range(6)]
        for a in range(4):
            total = links[:, a].sum() + held[:, a].sum()
            for c in range(3):
                mass = sum(links[i, a] * F[i][c] for i in range(6))
                A[a, c] = (mass + sum(held[i, a] for i in range(3) if labels[i] == c)) / total
    found = spread(module.csr_array(links), start, module.csr_array(held), labels)
    assert np.allclose(found, A, atol=1e-4)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-4)


def test_an_images_shares_are_those_of_its_anchors_and_its_own(clusters):
    pool, _ = clusters((9, 9, 9, 9), balance=0.5)
    model = LabelPropagation.fit(pool)
    learned, start = model.arrays, pool.shares()
    found = on_arrays(model, pool.scores, pool.features)[:, 1:]
    for i, x in enumerate(pool.features):
        links = links_of(x, learned["anchors"], learned["width"][0])
        assert np.allclose(
            found[i], ((1 - KEPT) * links @ learned["shares"] + KEPT * start[i]) * learned["weights"], atol=1e-9
        )


@pytest.mark.parametrize("balance", [0.3, 1.0])
def test_classes_are_divided_by_a_power_of_their_size(balance):
    masses, balanced = np.array([7.0, 2, 1, 9]), np.array([True, True, False, True])
    found = class_weights(masses, balanced, balance)
    assert found[2] == 1
    assert np.isclose((found * masses)[balanced].sum(), 18)
    assert np.isclose(found[0] / found[1], (2 / 7) ** balance)
    if balance == 1:
        assert np.allclose((found * masses)[balanced], 6)


@pytest.mark.parametrize(
    ("sizes", "doubt"), [((30, 30, 30, 30), 0.7), ((60, 20, 60, 20), 0.5)], ids=["equal", "one to three"]
)
@pytest.mark.parametrize("seed", range(3))
def test_images_that_are_alike_get_the_same_label(sizes, doubt, seed, clusters, right):
    pool, labels = clusters(sizes, doubt, seed)
    found = on_arrays(LabelPropagation.fit(pool), pool.scores, pool.features)
    assert right(found, labels) > right(pool.scores, labels) + 0.03
    assert right(found, labels) > 0.9


def test_labelled_images_spread_their_label(scored):
    """Images of a seen class that the method takes for another one."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 20)
    features = 4.0 * np.eye(2)[labels] + 0.3 * rng.normal(size=(40, 2))
    scores, everything = np.tile([0.0, 1.0], (40, 1)), np.ones(2, dtype=bool)
    held = [4.0, 0.0] + 0.3 * rng.normal(size=(60, 2))
    found = [
        on_arrays(LabelPropagation.fit(pool), scores, features).argmax(axis=1)
        for pool in (scored(scores, features, everything), scored(scores, features, everything, held, [0] * 60))
    ]
    assert (found[0] == 1).all()
    assert np.array_equal(found[1], labels)


def test_anchors_do_not_depend_on_the_order_of_the_images():
    X = np.random.default_rng(0).normal(size=(90, 3))
    found = find_anchors(X, 12)
    assert found.shape == (12, 3)
    assert np.array_equal(find_anchors(X[::-1], 12), found)
    assert len(find_anchors(X, 1000)) == 30
    assert len(find_anchors(np.ones((50, 2)), 12)) == 1  # all images are the same


def test_it_is_known_by_its_name_and_refuses_what_does_not_belong_together(clusters):
    assert REFINEMENTS["label-propagation"] is LabelPropagation
    pool, _ = clusters((9, 9, 9, 9))
    arrays = LabelPropagation.fit(pool).arrays
    for change in (
        {"shares": arrays["shares"][1:]},
        {"width": np.zeros(1)},
        {"anchors": arrays["anchors"][:0], "shares": arrays["shares"][:0]},
    ):
        with pytest.raises(ValueError, match="refinement"):
            LabelPropagation.restore({**arrays, **change}, pool.candidates, 4)
