"""Names of groups: the formulas against plain loops, and what heads are told."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from pren.methods import gaussian_process, naming
from pren.methods.gaussian_process import guess_means
from pren.methods.likeliest_names import (
    Groups,
    Guesses,
    Standing,
    follow,
    names_by,
    squared_distances,
    swap_changes,
)
from pren.methods.naming import agreed, draw_heads, guess_each, votes_on
from pren.problem import UNKNOWN

H = 3
sizes = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))


def drawn(u, d, seed):
    """Groups, and the guesses of H heads whose errors hang together."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(H, u, u + 1))
    groups = Groups(rng.normal(size=(u, d)), rng.random(u))
    precision = np.linalg.inv(root @ root.swapaxes(1, 2) + 0.1 * np.eye(u))
    return groups, Guesses(rng.normal(size=(H, u, d)), precision)


def energy(groups, means, A, named):
    """Σ_ab A_ab r_a·r_b of one head, class by class."""
    r = [groups.weight[g] * (groups.centres[g] - means[c]) for c, g in enumerate(named)]
    return sum(A[a, b] * float(r[a] @ r[b]) for a in range(len(r)) for b in range(len(r)))


def swaps(named):
    """Every pair of classes, and the names after they have changed their groups."""
    for r in range(len(named)):
        for s in range(len(named)):
            swapped = named.copy()
            swapped[[r, s]] = named[[s, r]]
            yield r, s, swapped


@settings(max_examples=30)
@given(sizes)
def test_what_a_swap_changes_is_what_it_changes(size):
    groups, (means, A) = drawn(*size)
    rng = np.random.default_rng(size[2])
    named = np.array([rng.permutation(size[0]) for _ in range(H)])
    everyone = np.broadcast_to(np.arange(size[0]), named.shape)
    changes = swap_changes(Standing.of(groups, means, A, named), everyone)
    for h in range(H):
        before = energy(groups, means[h], A[h], named[h])
        for r, s, swapped in swaps(named[h]):
            expected = energy(groups, means[h], A[h], swapped) - before
            assert changes[h, r, s] == pytest.approx(expected, abs=1e-8)


@settings(max_examples=30)
@given(st.tuples(st.integers(2, 6), st.integers(1, 4), st.integers(0, 99)))
def test_what_follows_from_a_swap_is_what_a_fresh_look_finds(size):
    groups, (means, A) = drawn(*size)
    rng = np.random.default_rng(size[2])
    named = np.array([rng.permutation(size[0]) for _ in range(H)])
    everyone = np.broadcast_to(np.arange(size[0]), named.shape)
    now = Standing.of(groups, means, A, named)
    changes = swap_changes(now, everyone)
    for _ in range(3):
        pairs = np.array([rng.permutation(size[0])[:2] for _ in range(H)])
        for h, (r, s) in enumerate(pairs):
            named[h, [r, s]] = named[h, [s, r]]
        now = follow(now, changes, pairs)
        fresh = Standing.of(groups, means, A, named)
        for ours, expected in zip(now, fresh, strict=True):
            np.testing.assert_allclose(ours, expected, atol=1e-9 * max(1, np.abs(expected).max()))
        expected = swap_changes(fresh, everyone)
        np.testing.assert_allclose(changes, expected, atol=1e-9 * max(1, np.abs(expected).max()))


@settings(max_examples=30)
@given(sizes)
def test_names_are_those_of_a_plain_loop(size):
    """The best swap first, each looked for afresh; ties aside."""
    groups, (means, A) = drawn(*size)
    scaled = A / np.abs(A).max(axis=(1, 2), keepdims=True)
    for h in range(H):
        alone = groups.weight**2 * squared_distances(means[h], groups.centres)
        named, best = linear_sum_assignment(alone)[1], 0.0
        while True:
            before = energy(groups, means[h], scaled[h], named)
            after = [(energy(groups, means[h], scaled[h], other), other) for _, _, other in swaps(named)]
            best, other = min(after, key=lambda each: each[0])
            if best >= before - 1e-9 * alone.max():
                break
            named = other
        assert names_by(Guesses(means, A), groups)[h].tolist() == named.tolist()


@settings(max_examples=30)
@given(sizes, st.integers(0, 3))
def test_names_that_are_known_stay_and_the_others_are_likeliest_with_them(size, count):
    u = size[0]
    groups, (means, A) = drawn(*size)
    rng = np.random.default_rng(size[2])
    fixed = np.where(np.arange(u) < count, rng.permutation(u), UNKNOWN)
    named = names_by(Guesses(means, A), groups, fixed)
    assert (named[:, fixed != UNKNOWN] == fixed[fixed != UNKNOWN]).all()
    for h in range(H):
        assert sorted(named[h].tolist()) == list(range(u))
        least = energy(groups, means[h], A[h], named[h])
        for r, s, swapped in swaps(named[h]):
            if UNKNOWN == fixed[r] == fixed[s]:
                assert energy(groups, means[h], A[h], swapped) >= least - 1e-6 * np.abs(A[h]).max()
    nothing = np.full(u, UNKNOWN)
    np.testing.assert_array_equal(names_by(Guesses(means, A), groups, nothing), names_by(Guesses(means, A), groups))


@settings(max_examples=30)
@given(sizes)
def test_no_swap_of_two_names_makes_them_likelier(size):
    groups, (means, A) = drawn(*size)
    named = names_by(Guesses(means, A), groups)
    for h in range(H):
        assert sorted(named[h].tolist()) == list(range(size[0]))
        least = energy(groups, means[h], A[h], named[h])
        for _, _, swapped in swaps(named[h]):
            assert energy(groups, means[h], A[h], swapped) >= least - 1e-6 * np.abs(A[h]).max()


def test_squared_distances_of_stacks():
    a, b = np.random.default_rng(0).normal(size=(2, H, 4, 5))
    for found, other in ((squared_distances(a, b), b), (squared_distances(a, b[0]), np.stack([b[0]] * H))):
        for h, r, s in np.ndindex(H, 4, 4):
            assert found[h, r, s] == pytest.approx(((a[h, r] - other[h, s]) ** 2).sum())


def test_an_error_that_two_classes_share_does_not_swap_them():
    """Both guesses are off by the same, so that each group is nearest to the other's guess or to none."""
    groups = Groups(np.array([[0.0], [1.0], [10.0]]), np.ones(3))
    means = np.array([[[1.2], [2.2], [10.0]], [[1.2], [-0.3], [10.0]]])
    precision = np.linalg.inv(np.array([[2.0, 1.9, 0], [1.9, 2.0, 0], [0, 0, 2.0]]))
    assert names_by(Guesses(means, np.stack([precision] * 2)), groups).tolist() == [[0, 1, 2], [1, 0, 2]]


@settings(max_examples=20)
@given(st.integers(1, 24), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99), st.booleans())
def test_heads_guess_as_one_process_would_from_what_they_are_told(S, u, m, seed, same):
    rng = np.random.default_rng(seed)
    known, values, wanted = rng.normal(size=(S, m)), rng.normal(size=(S, 3)), rng.normal(size=(u, m))
    if same:
        known[:] = known[0]
    told = draw_heads(7, S, m, rng)
    found = guess_each(told, known, values, wanted)
    for h in range(7):
        one, weights = told.classes[h], told.weights[h]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gaussian_process, "NOISES", [told.noises[h]])
            expected = guess_means(known[one] * weights, values[one], wanted * weights)
        np.testing.assert_allclose(found.means[h], expected.means, rtol=1e-6, atol=1e-6)
        ratio = found.precision[h] @ expected.covariance
        np.testing.assert_allclose(ratio, ratio[0, 0] * np.eye(u), atol=1e-6 * abs(ratio[0, 0]))


@pytest.mark.parametrize("numbers", [1, 10**9])
def test_votes_are_counted_head_by_head_whatever_fits_into_memory(monkeypatch, numbers):
    rng = np.random.default_rng(1)
    known, values, wanted = rng.normal(size=(12, 4)), rng.normal(size=(12, 3)), rng.normal(size=(5, 4))
    groups, told = Groups(rng.normal(size=(5, 3)), rng.random(5)), draw_heads(9, 12, 4, rng)
    expected = np.zeros((5, 5))
    for h in range(9):
        named = names_by(guess_each(told.part(slice(h, h + 1)), known, values, wanted), groups)[0]
        for label, group in enumerate(named):
            expected[group, label] += 1 / 9
    monkeypatch.setattr(naming, "NUMBERS", numbers)
    np.testing.assert_allclose(votes_on(groups, told, known, values, wanted), expected)


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(0, 99))
def test_what_is_agreed_on_has_the_most_votes_together(u, seed):
    rng = np.random.default_rng(seed)
    votes, weight, usual = rng.dirichlet(np.ones(u), size=u), rng.random(u), np.eye(u)[rng.permutation(u)]
    named = agreed(votes, usual, weight, 0.3)

    def together(order):
        return sum(weight[g] * (votes[g, c] + 0.3 * usual[g, c]) for c, g in enumerate(order))

    assert together(named) >= max(together(order) for order in permutations(range(u))) - 1e-7


def test_a_thin_majority_changes_no_name():
    usual, other, both = np.eye(3), np.eye(3)[[1, 0, 2]], np.ones(3)
    thin, clear = ((0.5 - by) * usual + (0.5 + by) * other for by in (0.1, 0.2))
    assert agreed(thin, usual, both, 0.3).tolist() == [0, 1, 2]
    assert agreed(clear, usual, both, 0.3).tolist() == [1, 0, 2]
    assert agreed(thin, other, both, 0.3).tolist() == [1, 0, 2]


def test_groups_that_the_heads_are_split_on_or_that_are_empty_keep_their_names():
    assert agreed(np.full((3, 3), 1 / 3), np.zeros((3, 3)), np.ones(3), 0.3).tolist() == [0, 1, 2]
    swapped = np.eye(3)[[1, 0, 2]]
    assert agreed(swapped, swapped, np.array([0.0, 0.0, 1.0]), 0.3).tolist() == [0, 1, 2]


@given(st.integers(1, 45), st.integers(1, 35), st.integers(1, 9), st.integers(0, 9))
def test_heads_are_told_all_alike(heads, S, m, seed):
    told = draw_heads(heads, S, m, np.random.default_rng(seed))
    assert told.weights.shape == (heads, m)
    turns = min(10, S)  # after so many heads, each class was left out as often as others
    left_out = S // turns if S > 2 else 0
    assert told.classes.shape == (heads, S - left_out)
    assert (np.diff(told.classes, axis=1) > 0).all()
    for one in range(0, heads - 1, 2):
        np.testing.assert_allclose(told.weights[one] ** 2 + told.weights[one + 1] ** 2, 2)
        assert told.noises[one] == told.noises[one + 1]
    for first in range(0, heads - turns + 1, turns):
        of_class = np.bincount(told.classes[first : first + turns].ravel(), minlength=S)
        assert set(of_class.tolist()) <= {turns - 1, turns}
        assert (of_class == turns - 1).sum() == turns * left_out
