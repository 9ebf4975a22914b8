"""Eq. 1 and 2 against plain loops, and what the degenerate eigenproblem leaves to us."""

from collections import Counter
from math import ceil, comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refused

from pren.core.projection import (
    _random_frame,
    all_subsets,
    draw_subsets,
    half_subsets,
    original,
    project,
    resolve_dim,
    similarity_matrix,
    top_eigenvectors,
)
from pren.foundation.seeds import stream


def similarity_by_loops(seen, subset):
    C = np.zeros((seen.shape[1], seen.shape[1]))
    for i in seen:
        for j in subset:
            length = np.linalg.norm(i) * np.linalg.norm(j)
            A = i @ j / length if length > 0 else 0.0
            C += 0.5 * (A * np.outer(i, j) + A * np.outer(j, i))
    return C


def rotation(m, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(m, m)))[0]


def with_eigenvalues(*values, seed=0):
    Q = rotation(len(values), seed)
    return Q @ np.diag(values) @ Q.T


def head_stream(head=0, seed=0):
    return stream(seed, "projection", head)


def rayleigh(P, C):
    return np.einsum("hm,mn,hn->h", P, C, P)


@st.composite
def signature_tables(draw, min_m=2):
    """Signatures (L, m) and who is seen: Gaussian, or the binary, repeated and empty ones that make C degenerate."""
    n_seen, n_subset, m = draw(st.integers(1, 6)), draw(st.integers(1, 6)), draw(st.integers(min_m, 12))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kind = draw(st.sampled_from(["gaussian", "positive", "binary", "repeated", "with a zero row"]))
    M = rng.normal(size=(n_seen + n_subset, m))
    if kind == "positive":
        M = np.abs(M)
    if kind == "binary":
        M = (M > 0).astype(float)
    if kind == "repeated":
        M = M[rng.integers(0, 2, len(M)) % len(M)]
    if kind == "with a zero row":
        M[rng.integers(len(M))] = 0
    return M[:n_seen], M[n_seen:]


# --- the subsets Z_k


@given(n_unseen=st.integers(1, 9), heads=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_subsets_have_the_right_size_and_differ_and_cover_evenly(n_unseen, heads, seed):
    subsets = draw_subsets(n_unseen, heads, np.random.default_rng(seed))
    assert subsets.shape == (heads, n_unseen)
    assert subsets.dtype == bool
    size = max(min(2, n_unseen), ceil(n_unseen / 2))
    assert (subsets.sum(axis=1) == size).all()
    coverage = subsets.sum(axis=0)
    assert coverage.max() - coverage.min() <= 1
    times = Counter(row.tobytes() for row in subsets)
    exist = comb(n_unseen, size)
    assert len(times) == min(heads, exist)
    assert max(times.values()) <= ceil(heads / exist)  # none is there three times before all are there twice


@pytest.mark.parametrize(("n_unseen", "size", "exist"), [(1, 1, 1), (2, 2, 1), (3, 2, 3), (4, 2, 6), (5, 3, 10)])
def test_few_unseen_classes(n_unseen, size, exist):
    subsets = draw_subsets(n_unseen, 2 * exist + 1, np.random.default_rng(0))
    assert set(subsets.sum(axis=1)) == {size}
    times = Counter(row.tobytes() for row in subsets)
    assert sorted(times.values()) == [2] * (exist - 1) + [3]


@pytest.mark.parametrize("n_unseen", [10, 50, 72])
def test_the_subsets_of_the_benchmarks_all_differ(n_unseen):
    subsets = draw_subsets(n_unseen, 50, np.random.default_rng(0))
    assert len({row.tobytes() for row in subsets}) == 50
    assert np.ptp(subsets.sum(axis=0)) <= 1
    assert (subsets.sum(axis=1) == n_unseen // 2).all()


@pytest.mark.parametrize(("n_unseen", "heads"), [(4, 3), (5, 12)])
def test_every_class_has_the_same_chance_with_every_head(n_unseen, heads):
    drawn = [draw_subsets(n_unseen, heads, np.random.default_rng(seed)) for seed in range(1000)]
    share = np.mean(drawn, axis=0)
    assert np.abs(share - ceil(n_unseen / 2) / n_unseen).max() < 0.08  # five standard deviations


def test_half_subsets_are_drawn_from_the_unseen_classes_by_the_seed_alone():
    seen = np.array([True, False, True, False, False, False])
    subsets = half_subsets(seen, 5, seed=3)
    assert not subsets[:, seen].any()
    assert np.array_equal(subsets[:, ~seen], draw_subsets(4, 5, stream(3, "subsets")))
    assert not np.array_equal(subsets, half_subsets(seen, 5, seed=4))


@pytest.mark.parametrize("n_unseen", [3, 4, 50])
def test_one_head_cannot_vote_for_half_of_the_classes_only(n_unseen):
    seen = np.arange(n_unseen + 2) < 2
    with refused("projection-single-head"):
        half_subsets(seen, 1, seed=0)
    assert half_subsets(seen, 2, seed=0).any(axis=0)[2:].all()


@pytest.mark.parametrize("n_unseen", [1, 2])
def test_one_head_is_enough_for_two_unseen_classes(n_unseen):
    assert half_subsets(np.arange(n_unseen + 2) < 2, 1, seed=0).tolist() == [[False, False] + [True] * n_unseen]


def test_all_subsets_hold_every_unseen_class():
    assert all_subsets(np.array([True, False, False]), 2).tolist() == [[False, True, True]] * 2


# --- C_k


@given(signature_tables())
def test_the_similarity_matrix_is_the_double_sum_over_classes(table):
    seen, subset = table
    C = similarity_matrix(seen, subset)
    assert np.allclose(C, similarity_by_loops(seen, subset), rtol=0, atol=1e-12 * (1 + np.abs(C).max()))
    assert np.array_equal(C, C.T)


# --- P_k


@given(signature_tables(), st.data())
def test_rows_are_orthonormal_and_maximise_the_trace(table, data):
    C = similarity_matrix(*table)
    h = data.draw(st.integers(1, len(C) - 1), label="h")
    largest = np.linalg.eigvalsh(C)[::-1][:h].sum()
    close = 1e-9 * (1 + np.abs(C).max())
    traces = {}
    for completion in ("null", "lapack", "complement"):
        P, _ = top_eigenvectors(C, h, completion, head_stream())
        assert P.shape == (h, len(C))
        assert np.allclose(P @ P.T, np.eye(h), rtol=0, atol=1e-9), completion
        traces[completion] = np.trace(P @ C @ P.T)
    assert traces["null"] == pytest.approx(largest, abs=close)
    assert traces["lapack"] == pytest.approx(largest, abs=close)
    assert traces["complement"] <= largest + close


def test_completion_takes_positive_then_null_then_negative_nearest_zero():
    C = with_eigenvalues(-0.5, 0, 3, -5, 0, 2, 0, -1)
    P, zero_row = top_eigenvectors(C, 7, "null", head_stream())
    values = [3, 2, 0, 0, 0, -0.5, -1]
    assert np.allclose(rayleigh(P, C), values)
    assert np.allclose(P @ C, np.array(values)[:, None] * P)  # eigenvectors, one by one
    assert zero_row.tolist() == [False, False, True, True, True, False, False]


@pytest.mark.parametrize(("h", "rows"), [(3, "+++"), (4, "++++"), (5, "++++0"), (6, "++++00"), (9, "++++00---")])
def test_a_null_space_that_is_used_up_as_on_sun(h, rows):
    rng = np.random.default_rng(0)
    seen, subset = rng.random((12, 10)), rng.random((4, 10))  # 4 positive, 2 null, 4 negative; SUN72 has 36, 30, 36
    C = similarity_matrix(seen, subset)
    values = np.linalg.eigvalsh(C)[::-1]
    P, zero_row = top_eigenvectors(C, h, "null", head_stream())
    assert np.allclose(rayleigh(P, C), values[:h])
    assert "".join("0" if z else "+" if r > 0 else "-" for z, r in zip(zero_row, rayleigh(P, C), strict=True)) == rows


@pytest.mark.parametrize(("small", "counts"), [(1e-11, True), (1e-13, False), (-1e-11, True), (-1e-13, False)])
def test_an_eigenvalue_counts_as_zero_relative_to_the_largest(small, counts):
    C = np.diag([1000.0, 1000 * small, 0, 0])
    _, zero_row = top_eigenvectors(C, 3, "null", head_stream())
    assert zero_row.sum() == (1 if small > 0 else 2) + (not counts) * (small > 0)
    P, _ = top_eigenvectors(C, 2, "none", head_stream())
    assert P[1].any() == (counts and small > 0)


def test_the_entry_of_largest_magnitude_is_positive():
    flips = 0
    for seed in range(20):
        C = with_eigenvalues(4, 3, 2, 0, -1, -2, -3, seed=seed)
        P, zero_row = top_eigenvectors(C, 6, "null", head_stream())
        rows = P[~zero_row]
        assert len(rows) == 5
        assert (rows.max(axis=1) == np.abs(rows).max(axis=1)).all()
        lapack, _ = top_eigenvectors(C, 3, "lapack", head_stream())
        flips += (lapack.max(axis=1) < -lapack.min(axis=1)).sum()
    assert flips > 0  # LAPACK does not do it for us


def test_the_first_of_several_largest_entries_decides_the_sign():
    row = np.array([0.5, -0.5, -0.5, 0.5])
    row[1:] *= 1 + 1e-14  # round-off must not decide
    P, _ = top_eigenvectors(np.outer(row, row), 1, "null", head_stream())
    assert np.allclose(P, [row])


def test_completion_lapack_is_what_eigh_returns():
    C = with_eigenvalues(2, 1, 0, 0, 0, -1)
    P, zero_row = top_eigenvectors(C, 5, "lapack", head_stream())
    assert np.array_equal(P, np.linalg.eigh(C)[1][:, ::-1].T[:5])
    assert zero_row.tolist() == [False, False, True, True, True]


def test_completion_none_leaves_the_other_rows_empty():
    C = with_eigenvalues(2, 1, 0, 0, 0, -1)
    P, zero_row = top_eigenvectors(C, 5, "none", head_stream())
    assert np.array_equal(P[:2], top_eigenvectors(C, 2, "null", head_stream())[0])
    assert not P[2:].any()
    assert not zero_row.any()


def test_completion_complement_is_a_random_frame_of_all_that_is_not_positive():
    C = with_eigenvalues(2, 1, 0, 0, 0, -1, -2)
    P, zero_row = top_eigenvectors(C, 5, "complement", head_stream())
    positive = top_eigenvectors(C, 2, "null", head_stream())[0]
    assert np.array_equal(P[:2], positive)
    assert np.allclose(P[2:] @ positive.T, 0)
    assert (rayleigh(P, C)[2:] < -0.01).all()  # each row has a share of the negative directions
    assert not zero_row.any()
    assert not np.allclose(P, top_eigenvectors(C, 5, "complement", head_stream(1))[0])


@given(m=st.integers(2, 12), data=st.data())
def test_the_frame_does_not_depend_on_the_basis_of_its_space(m, data):
    dimension = data.draw(st.integers(1, m), label="dimension")
    count = data.draw(st.integers(0, dimension), label="count")
    basis = rotation(m)[:dimension]
    frame = _random_frame(basis, count, head_stream())
    assert frame.shape == (count, m)
    assert np.allclose(frame @ frame.T, np.eye(count))
    assert np.allclose(frame @ basis.T @ basis, frame)  # within the space
    for other in (-basis, basis[::-1], rotation(dimension, seed=1) @ basis):
        assert np.allclose(_random_frame(other, count, head_stream()), frame, atol=1e-7)


def test_the_frame_is_gram_schmidt_of_projected_gaussians():
    basis = rotation(6)[:4]
    frame = []
    for g in head_stream().standard_normal((3, 6)):
        inside = basis.T @ basis @ g
        rest = inside - sum((row @ inside) * row for row in frame)
        frame.append(rest / np.linalg.norm(rest))  # a positive multiple: the diagonal of R is positive
    assert np.allclose(_random_frame(basis, 3, head_stream()), frame)


@pytest.mark.parametrize("completion", ["null", "complement"])
def test_the_first_rows_do_not_depend_on_h(completion):
    C = with_eigenvalues(3, 2, 0, 0, 0, 0, 0, -1)
    P, _ = top_eigenvectors(C, 7, completion, head_stream())
    for h in range(1, 7):
        assert np.allclose(top_eigenvectors(C, h, completion, head_stream())[0], P[:h])


def test_nothing_in_common_leaves_a_random_frame():
    P, zero_row = top_eigenvectors(np.zeros((4, 4)), 3, "null", head_stream())
    assert np.allclose(P @ P.T, np.eye(3))
    assert zero_row.all()


@pytest.mark.parametrize(("dim", "m", "h"), [(None, 312, 70), (None, 71, 70), (None, 70, 69), (None, 2, 1), (5, 6, 5)])
def test_the_number_of_rows(dim, m, h):
    assert resolve_dim(dim, m) == h


@pytest.mark.parametrize(("dim", "m"), [(85, 85), (100, 85)])
def test_too_many_rows_are_refused_with_the_number_of_attributes(dim, m):
    with refused("projection-size"):
        resolve_dim(dim, m)


@pytest.mark.parametrize("dim", [None, 1])
def test_a_single_attribute_cannot_be_projected(dim):
    with refused("projection-size"):
        resolve_dim(dim, 1)


# --- E_k


def table_of(n_seen, n_unseen, m, seed=0):
    """Signatures, who is seen, and a subset of two thirds of the unseen classes for each of three heads."""
    M = np.random.default_rng(seed).random((n_seen + n_unseen, m))
    seen = np.arange(len(M)) < n_seen
    subsets = np.zeros((3, len(M)), dtype=bool)
    for head in range(3):
        subsets[head, n_seen:] = np.arange(n_unseen) % 3 != head
    return M, seen, subsets


def test_label_embeddings_are_projected_signatures():
    M, seen, subsets = table_of(8, 6, 15)
    labels = project(M, seen, subsets, 10, "null", seed=5)
    assert labels.vectors.shape == (3, 10, 14)
    assert labels.subsets is subsets
    for k in range(3):
        C = similarity_by_loops(M[seen], M[subsets[k]])
        P, _ = top_eigenvectors(C, 10, "null", head_stream(k, seed=5))
        for c in range(14):
            assert np.allclose(labels.vectors[k, :, c], P @ M[c], atol=1e-9)


@given(
    n_seen=st.integers(4, 8),
    m=st.integers(10, 16),
    scale=st.sampled_from([1e-3, 1.0, 100.0]),
    seed=st.integers(0, 10**6),
    completion=st.sampled_from(["null", "lapack"]),
)
def test_null_rows_are_exactly_zero_for_the_classes_of_the_subset(n_seen, m, scale, seed, completion):
    M, seen, subsets = table_of(n_seen, 6, m, seed)
    for Z in subsets:
        size = np.sort(np.abs(np.linalg.eigvalsh(similarity_matrix(M[seen], M[Z]))))
        assume(size[-8] > 1e-7 * size[-1])  # the next test is about the others
    E = project(scale * M, seen, subsets, m - 1, completion, seed).vectors
    for k, Z in enumerate(subsets):
        null = slice(4, m - 4)  # |Z_k| = 4: four positive directions, four negative ones
        assert (E[k][null][:, Z] == 0).all()
        assert (E[k][null][:, ~Z] != 0).all()
        assert (E[k][:4][:, Z] != 0).all()


def test_null_rows_are_exactly_zero_however_alike_the_seen_classes_are():
    # The smallest eigenvalue that is none of the zeros is 3e-10 of the largest, so the zero directions carry more
    # round-off than usual. There are 3 positive and 3 negative directions for 3 classes: all are accounted for.
    M = np.random.default_rng(4).random((9, 20))
    M[1:6] = M[0] + 1e-3 * M[1:6]
    seen = np.arange(9) < 6
    P, zero_row = top_eigenvectors(similarity_matrix(M[seen], M[~seen]), 15, "null", head_stream())
    assert zero_row.tolist() == [False] * 3 + [True] * 12
    assert np.abs(P[3:] @ M[~seen].T).max() < 1e-6
    E = project(M, seen, ~seen[None], 15, "null", seed=0).vectors[0]
    assert (E[3:, ~seen] == 0).all()


def test_null_rows_that_are_not_orthogonal_to_the_subset_are_left_alone():
    # One seen class: C has rank 2, whatever the subset, and zero directions that tell its classes apart.
    M, seen, subsets = table_of(1, 6, 9)
    E = project(M, seen, subsets, 8, "null", seed=0).vectors
    for k, Z in enumerate(subsets):
        P, zero_row = top_eigenvectors(similarity_matrix(M[seen], M[Z]), 8, "null", head_stream(k))
        assert zero_row.tolist() == [False] + [True] * 7
        assert (np.abs(E[k][zero_row][:, Z]) > 1e-6).all()
        assert np.allclose(E[k], P @ M.T, rtol=1e-12)


@pytest.mark.parametrize(("difference", "kept"), [(1e-4, True), (1e-12, False)])
def test_only_round_off_is_set_to_zero(difference, kept):
    # Again one seen class, which the unseen ones resemble: the zero directions see nothing of them but the difference.
    M, seen, subsets = table_of(1, 6, 9)
    M[1:] = M[0] + difference * M[1:]
    E = project(M, seen, subsets, 6, "null", seed=0).vectors
    for k, Z in enumerate(subsets):
        assert (E[k][1:][:, Z] != 0).all() == kept
        assert (E[k][1:][:, Z] != 0).any() == kept


def test_heads_with_the_same_subset_differ_in_their_null_rows_only():
    M, seen, subsets = table_of(8, 6, 15)
    same = np.tile(subsets[:1], (2, 1))
    first, second = project(M, seen, same, 10, "null", seed=0).vectors
    assert np.array_equal(first[:4], second[:4])
    assert (np.abs(first[4:, seen] - second[4:, seen]) > 1e-6).all()


def test_a_head_does_not_depend_on_how_many_others_there_are():
    M, seen, subsets = table_of(8, 6, 15)
    few = project(M, seen, subsets[:2], 10, "null", seed=0).vectors
    assert np.array_equal(few, project(M, seen, subsets, 10, "null", seed=0).vectors[:2])


def test_the_same_seed_gives_the_same_bits_and_another_seed_other_frames():
    M, seen, subsets = table_of(8, 6, 15)
    first, again, other = (project(M, seen, subsets, 10, "null", seed).vectors for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert np.array_equal(first[:, :4], other[:, :4])
    assert not np.isclose(first[:, 4:, :8], other[:, 4:, :8]).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_signatures_that_are_no_numbers_are_refused(bad):
    M, seen, subsets = table_of(3, 3, 5)
    M[4, 2] = bad
    with refused("not-finite"):
        project(M, seen, subsets, 3, "null", seed=0)


@pytest.mark.parametrize("completion", ["null", "lapack", "complement", "none"])
def test_empty_and_identical_signatures_make_no_nan(completion):
    M, seen, subsets = table_of(3, 3, 5)
    for table in (np.ones_like(M), np.zeros_like(M), M * (np.arange(6) != 3)[:, None]):
        E = project(table, seen, subsets, 4, completion, seed=0).vectors
        assert np.isfinite(E).all()
        if len(np.unique(table, axis=0)) == 1:
            assert np.allclose(E, E[:, :, :1])  # identical classes look alike to every head


def test_without_projection_every_head_sees_the_signatures_themselves():
    M, _, subsets = table_of(3, 3, 5)
    labels = original(M, subsets)
    assert labels.vectors.shape == (3, 5, 6)
    assert all(np.array_equal(E, M.T) for E in labels.vectors)
    assert labels.subsets is subsets
