"""A problem in the order of its content: what is drawn from it depends neither on names nor on the order of files.

Random draws go by place, and sums round by place. So whoever draws classes or images (`pren.trust`) takes the problem
in this order: the same classes and images under other names, or in another order, are the same problem.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pren.problem.class_table import ClassTable
from pren.problem.inputs import Inputs, chunks
from pren.problem.problem import Problem

Order = NDArray[np.int64]
Digests = NDArray[np.uint64]


def in_content_order(problem: Problem) -> Problem:
    """The same problem with its classes, labelled inputs and pool in the order of their content, and neutral names.

    Classes come in the order of their signatures, then of their inputs; inputs of a class and of the pool in that of a
    hash of their values. What is equal in all that can change places, which changes nothing. Features that are learned
    from the labelled inputs have no content of their own yet: these inputs stay in their order.
    """
    table, moves = problem.classes, not problem.train.learned
    inputs = digests(problem.train) if moves else np.zeros((len(problem.train), 2), dtype=np.uint64)
    rows = order_of(table.signatures, table.seen[:, None], _of_classes(inputs, problem.labels, len(table)))
    labels = np.argsort(rows)[problem.labels]
    places = np.lexsort((*inputs.T[::-1], labels)) if moves else np.arange(len(labels))
    pool = np.lexsort(digests(problem.pool).T[::-1])
    names = tuple(f"class {place:0{len(str(len(rows) - 1))}d}" for place in range(len(rows)))
    return replace(
        problem,
        train=problem.train.select(places) if moves else problem.train,
        labels=labels[places],
        pool=problem.pool.select(pool),
        given=None if problem.given is None else _moved(problem.given, rows)[pool],
        classes=ClassTable(names, table.signatures[rows], table.seen[rows], table.normalised, table.attributes),
    )


def order_of(*tables: NDArray[np.generic]) -> Order:
    """The order (n,) of rows by their values in tables (n, m_i), the first column first."""
    return np.lexsort([column for table in reversed(tables) for column in table.T[::-1]])


def digests(inputs: Inputs) -> Digests:
    """A hash of the values of each input: (N, 2), equal where all values are."""
    found = np.empty((len(inputs), 2), dtype=np.uint64)
    for start, chunk in zip(range(0, max(len(inputs), 1), 1024), chunks(inputs, 1024), strict=True):
        rows = chunk.reshape(len(chunk), -1).numpy() + np.float32(0)  # turns -0 into 0
        hashes = b"".join(hashlib.blake2b(row, digest_size=16).digest() for row in rows)
        found[start : start + len(rows)] = np.frombuffer(hashes, dtype=">u8").reshape(-1, 2)
    return found


def _of_classes(inputs: Digests, labels: Order, count: int) -> Digests:
    """The sum of the hashes (N, 2) of each class's inputs: (count, 2)."""
    sums = np.zeros((count, 2), dtype=np.uint64)
    np.add.at(sums, labels, inputs)  # overflow wraps around: the order of the sum has no effect
    return sums


def _moved(given: Order, rows: Order) -> Order:
    """Class indices, UNKNOWN among them, after the classes were put in the order of `rows`."""
    return np.append(np.argsort(rows), -1)[given]
