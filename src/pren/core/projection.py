"""Eq. 1 and 2: K subsets of the unseen classes and, for each, a projection of the signatures.

For a subset Z_k the projection P_k maximises Σ_{i∈S, j∈Z_k} A_ij tr(P M_i M_jᵀ Pᵀ) under P Pᵀ = I, where A_ij is the
cosine of two signatures. Its rows are the eigenvectors of

    C_k = Σ_{i∈S, j∈Z_k} ½ A_ij (M_i M_jᵀ + M_j M_iᵀ)

with the h largest eigenvalues. C_k has at most |Z_k| positive and |Z_k| negative eigenvalues; the others are zero. So
with h > |Z_k| the last rows come from the zero eigenspace, where every basis is equally good: Eq. 1 alone does not
determine P_k. `completion` says how to choose these rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pren.foundation.errors import PrenError
from pren.foundation.seeds import stream

Completion = Literal["null", "lapack", "complement", "none"]
Matrix = NDArray[np.float64]

DEFAULT_DIM = 70
ZERO = 1e-12  # an eigenvalue counts as zero below this share of the largest (real ones: 2e-8, numerical zeros: 3e-16)
ROUND_OFF = 1e-9  # relative size of values that count as round-off


@dataclass(frozen=True, eq=False)
class LabelEmbeddings:
    """The label embeddings and the voting subset of each head.

    Attributes:
        vectors: (K, h, L) float64, E_k.
        subsets: (K, L) True where class c is in Z_k.
        projections: (K, h, m) P_k; None for the original signatures.
        informative: (K, h) False where a row of P_k belongs to the eigenvalue zero; None for the original signatures.
    """

    vectors: Matrix
    subsets: NDArray[np.bool_]
    projections: Matrix | None = None
    informative: NDArray[np.bool_] | None = None


def draw_subsets(n_unseen: int, heads: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw Z_1 .. Z_K: random halves of the unseen classes, all different, covering the classes evenly.

    Returns:
        (K, |U|) True where the class is in the subset. The numbers of subsets per class differ by at most one. Subsets
        repeat only when fewer than K different ones exist.
    """
    size = max(min(2, n_unseen), math.ceil(n_unseen / 2))
    copies, rest = divmod(heads, math.comb(n_unseen, size))
    every = list(combinations(range(n_unseen), size)) if copies else []
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < rest:
        chosen.add(tuple(sorted(rng.choice(n_unseen, size, replace=False).tolist())))
    drawn = np.zeros((rest, n_unseen), dtype=bool)
    for head, subset in enumerate(sorted(chosen)):
        drawn[head, list(subset)] = True
    _even_out(drawn, rng)
    subsets = np.zeros((heads, n_unseen), dtype=bool)
    subsets[:rest] = drawn
    for head, subset in enumerate(every * copies, start=rest):
        subsets[head, list(subset)] = True
    rng.shuffle(subsets)
    return subsets


def _even_out(subsets: NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Swap an over-covered class for an under-covered one, in place, until the coverage is even.

    A swap that keeps the subsets different always exists: more of them hold a without b than b without a, and
    replacing a by b keeps different subsets different.
    """
    while len(subsets):
        covered = subsets.sum(axis=0)
        a, b = int(covered.argmax()), int(covered.argmin())
        if covered[a] - covered[b] <= 1:
            return
        taken = {row.tobytes() for row in subsets}
        for head in rng.permutation(np.flatnonzero(subsets[:, a] & ~subsets[:, b])):
            swapped = subsets[head].copy()
            swapped[a], swapped[b] = False, True
            if swapped.tobytes() not in taken:
                subsets[head] = swapped
                break


def similarity_matrix(seen: Matrix, subset: Matrix) -> Matrix:
    """C_k of Eq. 2.

    Args:
        seen: (|S|, m) signatures.
        subset: (|Z_k|, m) signatures.

    Returns:
        (m, m), symmetric.
    """
    A = _unit(seen) @ _unit(subset).T
    half = seen.T @ A @ subset
    return 0.5 * (half + half.T)


def _unit(rows: Matrix) -> Matrix:
    """Rows scaled to unit length; a zero row stays zero (it is similar to nothing)."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def top_eigenvectors(
    C: Matrix, h: int, completion: Completion, rng: np.random.Generator
) -> tuple[Matrix, NDArray[np.bool_]]:
    """P_k of Eq. 2: eigenvectors of C for its h largest eigenvalues.

    Args:
        C: (m, m) symmetric.
        h: Number of rows, less than m.
        completion: Where the rows beyond the positive eigenvalues come from: "null" (a random frame of the zero
            eigenspace, then the negative eigenvalues nearest zero), "lapack" (as `eigh` returns them), "complement" (a
            random frame of the complement of the positive eigenspace; does not maximise Eq. 1) or "none" (zero rows).
        rng: The stream of this head, for the random frame.

    Returns:
        P (h, m), and (h,) True where a row belongs to the eigenvalue zero.
    """
    values, columns = np.linalg.eigh(C)
    values, vectors = values[::-1], columns.T[::-1]  # descending; vectors are rows
    signs = _signs(values)
    positive, null, negative = signs > 0, signs == 0, signs < 0
    if completion == "lapack":
        return vectors[:h].copy(), null[:h]

    P = np.zeros((h, len(C)))
    zero_row = np.zeros(h, dtype=bool)
    n = min(h, int(positive.sum()))
    P[:n] = _fix_signs(vectors[positive][:n])
    if completion == "none":
        return P, zero_row
    if completion == "complement":
        P[n:] = _random_frame(vectors[~positive], h - n, rng)
        return P, zero_row
    filled = n + min(h - n, int(null.sum()))
    P[n:filled] = _random_frame(vectors[null], filled - n, rng)
    zero_row[n:filled] = True
    P[filled:] = _fix_signs(vectors[negative][: h - filled])
    return P, zero_row


def _signs(eigenvalues: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """1, 0 or -1 for each; 0 if it is small relative to the largest."""
    size = np.abs(eigenvalues).max()
    return np.where(np.abs(eigenvalues) <= ZERO * size, 0, np.sign(eigenvalues)).astype(np.int64)


def _fix_signs(rows: Matrix) -> Matrix:
    """Make the largest entry of each row positive (the first one of those equal within round-off)."""
    if len(rows) == 0:
        return rows
    size = np.abs(rows)
    entry = (size >= size.max(axis=1, keepdims=True) * (1 - ROUND_OFF)).argmax(axis=1)
    signs: Matrix = np.sign(rows[np.arange(len(rows)), entry])
    return rows * signs[:, None]


def _random_frame(basis: Matrix, count: int, rng: np.random.Generator) -> Matrix:
    """Random orthonormal rows in the span of a basis.

    N Nᵀ G with Gaussian G does not depend on the basis N that LAPACK chose; neither does Q once the diagonal of R is
    positive. The first rows do not depend on `count`.
    """
    G = rng.standard_normal((count, basis.shape[1])).T
    Q, R = np.linalg.qr(basis.T @ (basis @ G))
    frame: Matrix = (Q * np.sign(np.diag(R))).T
    return frame


def resolve_dim(dim: int | None, m: int) -> int:
    """h, from the user's `dim` and the length m of a signature."""
    if m < 2:
        raise PrenError("projection-size", f"Signatures have {m} attribute: a projection needs at least 2.")
    if dim is None:
        return min(DEFAULT_DIM, m - 1)
    if dim >= m:
        raise PrenError("projection-size", f"dim={dim} is too large for m={m} attributes: choose at most {m - 1}.")
    return dim


def half_subsets(seen: NDArray[np.bool_], heads: int, seed: int) -> NDArray[np.bool_]:
    """Z_1 .. Z_K as (K, L): random halves of the unseen classes."""
    n_unseen = int((~seen).sum())
    if heads == 1 and n_unseen > 2:
        message = (
            f"One head only votes on half of the {n_unseen} unseen classes: choose heads=2 or more, or subsets='all'."
        )
        raise PrenError("projection-single-head", message)
    subsets = np.zeros((heads, len(seen)), dtype=bool)
    subsets[:, ~seen] = draw_subsets(n_unseen, heads, stream(seed, "subsets"))
    return subsets


def all_subsets(seen: NDArray[np.bool_], heads: int) -> NDArray[np.bool_]:
    """Z_k = U for every head, as (K, L)."""
    return np.tile(~seen, (heads, 1))


def project(
    signatures: Matrix, seen: NDArray[np.bool_], subsets: NDArray[np.bool_], h: int, completion: Completion, seed: int
) -> LabelEmbeddings:
    """E_k = P_k M for every head.

    Args:
        signatures: (L, m), Mᵀ.
        seen: (L,) True for S.
        subsets: (K, L) True for Z_k.
        h: Rows of P_k.
        completion: See `top_eigenvectors`.
        seed: The run's seed; head k uses stream "projection", k.
    """
    if not np.isfinite(signatures).all():
        raise PrenError("not-finite", "The signatures hold NaN or infinite values.")
    E = np.empty((len(subsets), h, len(signatures)))
    projections = np.empty((len(subsets), h, signatures.shape[1]))
    informative = np.empty((len(subsets), h), dtype=bool)
    lengths = np.linalg.norm(signatures, axis=1)
    for k, Z in enumerate(subsets):
        C = similarity_matrix(signatures[seen], signatures[Z])
        P, zero_row = top_eigenvectors(C, h, completion, stream(seed, "projection", k))
        E[k], projections[k], informative[k] = P @ signatures.T, P, ~zero_row
        # Zero rows are orthogonal to every signature of Z_k if [M_S A, M_Z] has full rank, that is, if |Z_k|
        # eigenvalues are positive and as many negative. Make this exact, or round-off decides between classes that
        # tie in the informative rows. Without full rank, only some of these entries are round-off.
        signs = _signs(np.linalg.eigvalsh(C))
        full_rank = (signs > 0).sum() == (signs < 0).sum() == Z.sum()
        on_subset = np.ix_(zero_row, Z)
        round_off = full_rank | (np.abs(E[k][on_subset]) <= ROUND_OFF * lengths[Z])
        E[k][on_subset] = np.where(round_off, 0.0, E[k][on_subset])
    return LabelEmbeddings(E, subsets, projections, informative)


def original(signatures: Matrix, subsets: NDArray[np.bool_]) -> LabelEmbeddings:
    """E_k = M for every head: the paper's variants without projection."""
    # Row order, as after loading from disk: NumPy keeps a single transposed copy in column order, which rounds products
    # differently.
    return LabelEmbeddings(np.ascontiguousarray(np.tile(signatures.T, (len(subsets), 1, 1))), subsets)
