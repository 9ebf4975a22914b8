"""Which of two descriptions of the classes is used: what tells where seen classes lie."""

from dataclasses import replace

import numpy as np
import pytest

from pren.data.describe import Signatures, combine
from pren.problem import ClassTable
from pren.trust.sources import FEWEST, best_sources, known_of

NAMES = ("attributes", "descriptions")


@pytest.fixture(scope="module")
def made(make_problem):
    return make_problem(n_seen=30, n_unseen=3, shape=(16,), per_class=10, pool_per_class=5)


def with_sources(problem, first, second):
    """The problem described by two tables (L, m) that are joined."""
    table = problem.classes
    tables = [
        Signatures(table.names, values, {"kind": kind}) for kind, values in zip("ab", (first, second), strict=True)
    ]
    both = combine(tables, table.seen)
    classes = ClassTable.build(table.names, both.values, table.seen, normalise=False)
    return replace(problem, classes=classes, source={"signatures": both.record()})


def places(problem):
    """Signatures that say where the classes lie."""
    X = problem.train[np.arange(len(problem.train))].numpy()
    seen = problem.classes.seen
    values = noise(problem, 5, X.shape[1])
    values[seen] = [X[problem.labels == row].mean(axis=0) for row in np.flatnonzero(seen)]
    return values


def noise(problem, seed, width=6):
    return np.random.default_rng(seed).normal(size=(len(problem.classes), width))


def test_what_tells_nothing_is_left_out_or_counts_less(made):
    good = places(made)
    for first, second, better in ((good, noise(made, 0), 0), (noise(made, 0), good, 1)):
        found = best_sources(with_sources(made, first, second), NAMES)
        told = [each.told for each in found.tried]
        assert told[better] > told[1 - better] + 0.1
        assert found.chosen.weights == () or found.chosen.weights[better] == max(found.chosen.weights) > 1
        assert found.chosen.names in (NAMES, (NAMES[better],))
        assert NAMES[better] in found.sentence()


def test_two_halves_of_what_is_known_are_used_together(made):
    good = places(made)
    half = good.shape[1] // 2
    found = best_sources(with_sources(made, good[:, :half], good[:, half:]), NAMES)
    assert found.chosen.names == NAMES
    assert found.chosen.options() == {
        "signatures": "attributes,descriptions",
        "signature_weights": list(found.chosen.weights),
    }
    assert all(name in found.sentence() for name in NAMES)
    assert known_of({"chosen": found.model_dump()}) == found
    assert known_of({}) is None


def test_where_few_classes_are_seen_both_count_alike(make_problem):
    few = make_problem(n_seen=FEWEST - 1, n_unseen=3, shape=(16,), per_class=10, pool_per_class=5)
    found = best_sources(with_sources(few, few.classes.signatures, noise(few, 0)), NAMES)
    assert (found.chosen.names, found.chosen.weights, found.chosen.told) == (NAMES, (1.0, 1.0), None)
    assert "alike" in found.sentence()


def test_the_order_of_the_classes_changes_nothing(made):
    problem = with_sources(made, places(made), noise(made, 1))
    order = np.random.default_rng(0).permutation(len(made.classes))
    table = problem.classes
    turned = replace(
        problem,
        labels=np.argsort(order)[problem.labels],
        classes=ClassTable(
            tuple(table.names[row] for row in order), table.signatures[order], table.seen[order], table.normalised
        ),
    )
    for ours, other in zip(best_sources(problem, NAMES).tried, best_sources(turned, NAMES).tried, strict=True):
        assert ours.told == pytest.approx(other.told, abs=1e-9)
        assert ours.weights == other.weights
