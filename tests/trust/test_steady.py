"""The same answer to the same question: names and order have no effect on what is told about a method."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pren.data.folds import held_out_classes
from pren.methods.pren_pool import PrENPool
from pren.methods.pren_vote import PrENVote
from pren.methods.rivals.eszsl import ESZSL
from pren.problem import UNKNOWN, Problem
from pren.problem.inputs import ArrayInputs
from pren.problem.order import digests, in_content_order, order_of
from pren.trust import assess


def told_otherwise(problem, whole, seed):
    """The same problem: classes, labelled inputs and pool in another order, classes under other names."""
    rng = np.random.default_rng(seed)
    table, train, pool = problem.classes, whole(problem.train), whole(problem.pool)
    rows, places, inputs = (rng.permutation(n) for n in (len(table), len(train), len(pool)))
    new = np.argsort(rows)
    classes = replace(
        table,
        names=tuple(f"{rng.integers(1 << 40):x} {row}" for row in rows),
        signatures=table.signatures[rows],
        seen=table.seen[rows],
    )
    return replace(
        problem,
        train=ArrayInputs(train[places]),
        labels=new[problem.labels[places]],
        pool=ArrayInputs(pool[inputs]),
        given=None if problem.given is None else np.append(new, UNKNOWN)[problem.given[inputs]],
        classes=classes,
    ), inputs


def told(trust):
    """All of it, in bytes."""
    arrays = {} if trust.familiarity is None else trust.familiarity.arrays
    return (
        trust.forecast.model_dump_json(),
        repr(trust.confidence.to_dict()),
        trust.levels.tobytes(),
        {name: array.tobytes() for name, array in arrays.items()},
    )


CASES = {"pren-vote": (PrENVote(heads=12), "zsl"), "pren-vote, gzsl": (PrENVote(heads=12), "gzsl"),
         "eszsl, gzsl": (ESZSL(), "gzsl")}  # fmt: skip


@pytest.fixture(scope="module")
def first(make_problem):
    """What is told about each method."""
    found = {}
    for case, (method, setting) in CASES.items():
        problem = make_problem(n_seen=7, n_unseen=3, per_class=5, pool_per_class=4, setting=setting)
        fitted = type(method)(**method.get_params()).fit(problem)
        found[case] = problem, told(assess(fitted, problem, 4, gamma=True)), fitted.predict(problem.pool)
    return found


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=6)
@given(seed=st.integers(0, 1 << 30))
def test_other_names_and_another_order_tell_the_same(first, whole, case, seed):
    problem, expected, labels = first[case]
    method, _ = CASES[case]
    other, inputs = told_otherwise(problem, whole, seed)
    fitted = type(method)(**method.get_params()).fit(other)
    assert told(assess(fitted, other, 4, gamma=True)) == expected
    meant = {str(row.tobytes()): name for row, name in zip(other.classes.signatures, other.classes.names, strict=True)}
    own = {
        name: str(row.tobytes()) for row, name in zip(problem.classes.signatures, problem.classes.names, strict=True)
    }
    assert fitted.predict(other.pool).tolist() == [meant[own[name]] for name in labels[inputs]]


def test_labels_that_are_given_move_with_their_inputs(make_problem, whole):
    problem = make_problem(n_seen=7, n_unseen=3)
    given_labels = np.full(len(problem.pool), UNKNOWN)
    given_labels[[1, 4]] = np.flatnonzero(problem.classes.unseen)[[0, 2]]
    problem = replace(problem, given=given_labels)
    other, _ = told_otherwise(problem, whole, 1)
    one, two, found = in_content_order(problem), in_content_order(other), []
    assert one.fingerprint() == two.fingerprint()
    assert (one.given == two.given).all()
    assert (one.given != UNKNOWN).sum() == 2
    for made in (problem, one):
        at = np.flatnonzero(made.given != UNKNOWN)
        pairs = zip(whole(made.pool)[at], made.classes.signatures[made.given[at]], strict=True)
        found.append({(row.tobytes(), signature.tobytes()) for row, signature in pairs})
    assert found[0] == found[1]


def test_each_input_keeps_its_class(make_problem, whole):
    problem = make_problem(n_seen=7, n_unseen=3)
    one, found = in_content_order(problem), []
    for made in (problem, one):
        pairs = zip(whole(made.train), made.classes.signatures[made.labels], strict=True)
        found.append(sorted((row.tobytes(), signature.tobytes()) for row, signature in pairs))
    assert found[0] == found[1]
    assert list(one.classes.names) == sorted(one.classes.names)
    assert (np.diff(one.labels) >= 0).all()


def test_equal_signatures_are_told_apart_by_their_inputs(whole):
    """Two seen classes with the same signature, drawn in the same turn whatever their order."""
    rng = np.random.default_rng(3)
    signatures = np.repeat(rng.random((4, 3)), 2, axis=0)
    labels = np.repeat(np.arange(6), 3)
    problem = Problem.from_arrays(rng.normal(size=(18, 4)), labels, signatures, rng.normal(size=(5, 4)))
    drawn = []
    for made in (problem, *(told_otherwise(problem, whole, seed)[0] for seed in range(5))):
        folds = held_out_classes(in_content_order(made), 3)
        drawn.append([(fold.fingerprint(), answers.labels.tolist()) for fold, answers in folds])
    assert all(one == drawn[0] for one in drawn)


def test_equal_inputs_have_equal_hashes():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [1.0, 1e-30]], dtype=np.float32)
    found = digests(ArrayInputs(rows))
    assert (found[0] == found[1]).all()
    assert len({tuple(row) for row in found.tolist()}) == 3


def test_rows_are_in_the_order_of_their_columns():
    a, b = np.array([[1, 2], [0, 9], [1, 1], [1, 1]]), np.array([[0], [0], [5], [4]])
    assert order_of(a, b).tolist() == sorted(range(4), key=lambda row: (*a[row], *b[row]))


def test_the_ends_stand_whatever_the_draw(monkeypatch):
    """The same photographs and classes; only the draw of the held-out classes is another."""
    rng, S, L = np.random.default_rng(4), 20, 25
    signatures = rng.normal(size=(L, 6))
    centres = signatures @ rng.normal(size=(6, 12)) + 0.9 * rng.normal(size=(L, 12))
    labels, hidden = np.repeat(np.arange(S), 8), np.repeat(np.arange(S, L), 8)
    train, pool = (centres[rows] + 1.5 * rng.normal(size=(len(rows), 12)) for rows in (labels, hidden))
    problem = Problem.from_arrays(train, labels, signatures, pool)
    fitted, ends = PrENPool().fit(problem), {10: [], None: []}
    for seed in range(4):
        monkeypatch.setattr("pren.data.folds.DATA_SEED", seed)
        for count, found in ends.items():
            forecast = assess(fitted, problem, count).forecast
            found.append((forecast.low, forecast.high))
    few, enough = (np.ptp(np.array(found), axis=0).max() for found in ends.values())
    assert enough <= 0.06 < few
