"""Copies: inputs of the pool that are the same as others, or nearly, such as a photograph that was resized or a burst.

A copy tells no more than one of them, so they count once in learning, and all get the label of one of them, their
*twin*. Copies of labelled inputs have a class already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pren.foundation.seeds import stream
from pren.problem.inputs import Inputs, chunks
from pren.problem.order import digests
from pren.problem.problem import UNKNOWN, Answers, Problem

Matrix = NDArray[np.float64]
Places = NDArray[np.int64]
Rows = Callable[[NDArray[np.float32]], Matrix]
NEAR = 0.6  # how far apart near copies are at most, in the usual distance of an input's nearest of its class
SOME = 30  # inputs of a class that are compared for that distance
ROUNDING = 1e-12  # of squared distances between vectors of unit length
SKETCH = 12  # numbers that stand for an input when near ones are searched for
SLACK = 1.3  # they round distances by a fifth
NEIGHBOURS = 8  # of one input are compared, so that the search is bounded
AT_ONCE = 4096  # pairs


def twins_in(problem: Problem) -> Places:
    """The place of each pool input's twin (N,): its own, unless it is a copy.

    Inputs with the same values are copies; features also if they are much nearer than two inputs of one class are. Two
    inputs that a person has given different labels are none. Photographs that a backbone trains on are not compared.
    """
    return problem.once("twins", partial(_twins_in, problem))


def labelled_twins(problem: Problem) -> Places:
    """The place of the labelled input that each pool input is a copy of (N,); -1 for most."""
    return problem.once("labelled twins", partial(_labelled_twins, problem))


def counted_once(problem: Problem, answers: Answers | None = None) -> tuple[Problem, Answers | None]:
    """The problem, and its answers, with one input of the pool for all its copies; the same if there are none."""
    twins = twins_in(problem)
    own = np.flatnonzero(twins == np.arange(len(twins)))
    if len(own) == len(twins):
        return problem, answers
    given = None if problem.given is None else problem.given[own]
    once = replace(problem, pool=problem.pool.select(own), given=given)
    once.once("twins", lambda: np.arange(len(own)))
    once.once("labelled twins", lambda: labelled_twins(problem)[own])
    if answers is None:
        return once, None
    names = None if answers.names is None else tuple(answers.names[place] for place in own)
    pictures = None if answers.pictures is None else answers.pictures.select(own)
    return once, replace(answers, labels=answers.labels[own], names=names, pictures=pictures)


def as_twins(problem: Problem) -> Problem:
    """The problem with every input of the pool replaced by its twin, which is labelled in its place."""
    twins = twins_in(problem)
    if (twins == np.arange(len(twins))).all():
        return problem
    return replace(problem, pool=problem.pool.select(twins))


def near_pairs(asked: Inputs, among: Inputs, radius: float, rows: Rows | None = None) -> Places:
    """Places (n, 2) of inputs among N asked and M others that lie near each other, by a bounded search.

    Args:
        asked: (N, D).
        among: (M, D), may be the same.
        radius: How far apart at most.
        rows: What is compared: vectors (n, D) of some inputs (n, ...); of unit length if None.
    """
    rows = rows or unit_rows
    tree = cKDTree(_sketched(among, rows))
    places = tree.query(_sketched(asked, rows), k=NEIGHBOURS, distance_upper_bound=SLACK * radius)[1].reshape(-1)
    pairs: Places = np.column_stack([np.repeat(np.arange(len(asked)), NEIGHBOURS), places])[places < len(among)]
    near = []
    for start in range(0, len(pairs), AT_ONCE):
        one, other = pairs[start : start + AT_ONCE].T
        apart = rows(asked[one].numpy()) - rows(among[other].numpy())
        near.append((apart**2).sum(axis=1) <= radius**2)
    return pairs[np.concatenate(near)] if near else pairs


def _sketched(inputs: Inputs, rows: Rows) -> Matrix:
    """(N, SKETCH) numbers whose distances are about those of the rows of N inputs."""
    size = (int(np.prod(inputs.sample_shape)), SKETCH)
    directions = stream(0, "sketch").normal(size=size) / np.sqrt(SKETCH)
    return np.concatenate([rows(chunk.numpy()) @ directions for chunk in chunks(inputs)])


def usual_distance(inputs: Inputs, labels: Places) -> float:
    """How near the nearest other input of its class is to an input, as vectors of unit length: the tenth percentile.

    0 if no class has two different inputs. Of a large class, some inputs stand for all.
    """
    hashes, nearest = digests(inputs), []
    order = np.lexsort((*hashes.T, labels))
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        rows = unit_rows(inputs[members[:SOME]].numpy())
        apart = 2 - 2 * rows @ rows.T
        apart[apart < ROUNDING] = np.inf  # the same input twice, and each with itself
        nearest.append(np.sqrt(apart.min(axis=1)))
    found = np.concatenate(nearest)
    found = found[np.isfinite(found)]
    return float(np.quantile(found, 0.1)) if len(found) else 0.0


def unit_rows(rows: NDArray[np.float32]) -> Matrix:
    """Rows (n, ...) as (n, D) of unit length, or 0."""
    flat = rows.reshape(len(rows), -1).astype(np.float64)
    scaled: Matrix = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return scaled


def _twins_in(problem: Problem) -> Places:
    pool, given = problem.pool, np.full(len(problem.pool), UNKNOWN) if problem.given is None else problem.given
    own = np.arange(len(pool))
    if pool.photographs:
        return own
    hashes, ungiven = digests(pool), given == UNKNOWN
    order = np.lexsort((own, ungiven, *hashes.T))  # of the same ones, those with a given label come first
    first = np.append(True, (hashes[order][1:] != hashes[order][:-1]).any(axis=1))
    twins = np.empty_like(own)
    twins[order] = order[first][np.cumsum(first) - 1]
    twins = np.where(~ungiven & (given != given[twins]), own, twins)  # a label of its own
    leaders, radius = np.flatnonzero(twins == own), _radius(problem)
    if not radius:
        return twins
    chosen = pool.select(leaders)
    pairs = leaders[near_pairs(chosen, chosen, radius)]
    by_content = leaders[np.lexsort((*hashes[leaders].T, ungiven[leaders]))]
    return _joined(pairs, by_content, given)[twins]


def _radius(problem: Problem) -> float:
    """How far apart near copies are at most; 0 for what is not compared."""
    features = len(problem.pool.sample_shape) == 1
    return NEAR * usual_distance(problem.train, problem.labels) if features else 0.0


def _joined(pairs: Places, order: Places, given: Places) -> Places:
    """The twin of each place (N,), where pairs (n, 2) are near: the first in `order` takes those that are near it."""
    twins, near = np.arange(len(given)), dict[int, set[int]]()
    for one, other in pairs[pairs[:, 0] != pairs[:, 1]].tolist():
        near.setdefault(one, set()).add(other)
        near.setdefault(other, set()).add(one)
    taken = set[int]()
    for leader in (place for place in order.tolist() if place in near):
        if leader not in taken:
            others = {place for place in near[leader] - taken if given[place] in (UNKNOWN, given[leader])}
            twins[list(others)] = leader
            taken |= others | {leader}
    return twins


def _labelled_twins(problem: Problem) -> Places:
    found = np.full(len(problem.pool), -1)
    if problem.pool.photographs:
        return found
    if radius := _radius(problem):
        asked, labelled = near_pairs(problem.pool, problem.train, radius).T
        found[asked[::-1]] = labelled[::-1]  # the nearest one comes first
    places = {row.tobytes(): place for place, row in enumerate(digests(problem.train))}
    same = np.array([places.get(row.tobytes(), -1) for row in digests(problem.pool)])
    return np.where(same >= 0, same, found)
