"""How far apart a head can hold classes: ``python -m benchmarks.margins [DATA ...] [--heads K]``.

No training, only label embeddings. For a class c of Z_k: the largest margin v · (E_k[:, c] - E_k[:, other]) over all
vectors v of length 1, with v ≥ 0 (what a head can give out with its output ReLU) and without; against the other classes
of Z_k (whom the head votes among), and against all classes (whom softmax compares). DATA as for `benchmarks.ablations`;
PREN_DATA says where CUB is.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.ablations import advice, opened
from benchmarks.tables import Table
from pren.core.projection import LabelEmbeddings, half_subsets, original, project, resolve_dim
from pren.problem import ClassTable

Matrix = NDArray[np.float64]


def margin(differences: Matrix, non_negative: bool) -> float:
    """The largest t such that a v of length 1 has v · d ≥ t for every row d; 0 if none has t > 0.

    The shortest v with v · d ≥ 1 has length 1 / t. It is found as Lawson and Hanson do it, by non-negative least
    squares: of (Gᵀ, g) u against (0, …, 0, 1) for the constraints G v ≥ g.

    Args:
        differences: (n, h).
        non_negative: Whether v ≥ 0 is asked for, too.
    """
    n, h = differences.shape
    G, g = differences, np.ones(n)
    if non_negative:
        G, g = np.vstack([G, np.eye(h)]), np.append(g, np.zeros(h))
    left, right = np.vstack([G.T, g]), np.append(np.zeros(h), 1.0)
    residual = left @ nnls(left, right)[0] - right
    if -residual[-1] < 1e-9:
        return 0.0
    return float(1 / np.linalg.norm(residual[:-1] / residual[-1]))


def margins(labels: LabelEmbeddings, among_all: bool, non_negative: bool) -> Iterator[float]:
    """Of every class of every Z_k."""
    for E, Z in zip(labels.vectors, labels.subsets, strict=True):
        others = np.flatnonzero(np.ones_like(Z) if among_all else Z)
        for c in np.flatnonzero(Z):
            yield margin(E[:, c] - E[:, others[others != c]].T, non_negative)


def table(name: str, classes: ClassTable, heads: int) -> Table:
    """Original signatures against projected ones."""
    order = np.argsort(classes.names)
    signatures, seen = classes.signatures[order], classes.seen[order]
    subsets = half_subsets(seen, heads, seed=0)
    h = resolve_dim(advice(name).get("dim"), signatures.shape[1])
    embeddings = {
        "original signatures": original(signatures, subsets),
        "projected": project(signatures, seen, subsets, h, "null", seed=0),
    }
    columns = [
        "",
        "Z_k, free",
        "Z_k, v ≥ 0",
        "kept in Z_k",
        "out of reach, %",
        "all, free",
        "all, v ≥ 0",
        "kept in all",
    ]
    made = Table(f"{name}: largest margins, medians over {heads} heads and their classes", columns)
    for title, labels in embeddings.items():
        row = [title]
        for among_all in (False, True):
            free, bound = (np.array(list(margins(labels, among_all, bound))) for bound in (False, True))
            row += [f"{np.median(free):.3f}", f"{np.median(bound):.3f}", f"{np.median(bound / free):.0%}"]
            row += [] if among_all else [f"{100 * np.mean(bound == 0):.1f}"]
        made.rows.append(row)
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.margins")
    parser.add_argument("data", nargs="*", default=["numbers"])
    parser.add_argument("--heads", type=int, default=10)
    options = parser.parse_args(arguments)
    for name in options.data:
        print(table(name, opened(name)[0].classes, options.heads).markdown(), end="\n\n")


if __name__ == "__main__":
    main()
