"""What linear methods share: sums over classes, ridge systems, and an order of classes that changes no bit."""

import numpy as np
import pytest
from refusals import refused

from pren.methods.formulas import on_arrays
from pren.methods.preparation import PREPARATIONS
from pren.methods.registry import METHODS
from pren.methods.rivals.eszsl import ESZSL
from pren.methods.rivals.linear import LinearMethod, solve_ridge
from pren.methods.rivals.sje import SJE
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs

LINEAR = [name for name, entry in METHODS.items() if issubclass(entry.method, LinearMethod)]


def test_sums_over_classes_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(2500, 3)).astype(np.float32), rng.integers(0, 4, size=2500)
    names = ["d", "a", "c", "b", "unseen"]
    problem = Problem.from_arrays(features, np.array(names)[labels], rng.random((5, 2)), features, names)
    model = ESZSL(features="standard").fit(problem)
    x = on_arrays(PREPARATIONS["standard"].fit(problem), features.astype(np.float64))
    gram, sums, counts = model._class_sums(problem, gram=True)
    assert np.allclose(gram, sum(np.outer(row, row) for row in x))
    for place, name in enumerate("abcd"):  # in the order of the names
        members = [row for row, label in zip(x, labels, strict=True) if names[label] == name]
        assert np.allclose(sums[place], sum(members))
        assert counts[place] == len(members)
        assert np.array_equal(model._seen()[place], problem.classes.signatures[names.index(name)])
    assert [sorted(names[:4])[place] for place in model._places(problem)] == [names[label] for label in labels]
    assert model._class_sums(problem)[0].shape == (0, 0)


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
@pytest.mark.parametrize("name", LINEAR)
def test_the_order_of_the_classes_changes_no_bit(name, quick, make_problem, setting):
    order = np.random.default_rng(7).permutation(8)
    one, two = (make_problem(setting=setting, order=o) for o in (np.arange(8), order))
    first, second = (quick(name).fit(problem).scores(problem.pool) for problem in (one, two))
    assert np.array_equal(second, first[:, order])


@pytest.mark.parametrize("kind", ["l2", "standard", "minmax"])
@pytest.mark.parametrize("name", LINEAR)
def test_scaling_is_done_to_whatever_is_scored(name, quick, make_problem, whole, kind):
    """A method that scales is the same as one that is given scaled features."""
    problem = make_problem(setting="gzsl")
    scaler = PREPARATIONS[kind].fit(problem)
    train, pool = (ArrayInputs(scaler.of(inputs)) for inputs in (problem.train, problem.pool))
    scaled = Problem(train, problem.labels, pool, problem.classes, "gzsl")
    firm = {"reg": 0.01} if name == "sync" else {}  # with hardly any, L-BFGS stops where rounding happens to take it
    expected = quick(name, features="raw", **firm).fit(scaled).scores(pool)
    scores = quick(name, features=kind, **firm).fit(problem).scores(problem.pool)
    assert np.allclose(scores, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())  # inputs are single precision


def test_ridge_systems_are_solved():
    rng = np.random.default_rng(0)
    root, right = rng.normal(size=(6, 4)), rng.normal(size=(4, 3))
    solution = solve_ridge(root.T @ root, 0.5, right, hint="reg")
    assert np.allclose((root.T @ root + 0.5 * np.eye(4)) @ solution, right)
    with refused("singular"):
        solve_ridge(-np.eye(4), 0.5, right, hint="reg")


def test_weights_that_are_no_numbers_are_refused(make_problem):
    model = SJE(lr=1e38, features="raw")
    with refused("diverged"):
        model.fit(make_problem())
    with refused("not-fitted"):
        model.scores(np.zeros((1, 5)))


@pytest.mark.parametrize("name", LINEAR)
def test_too_many_inputs_to_solve_for_are_refused(name, quick):
    wide = np.zeros((2, 20_001), dtype=np.float32)
    problem = Problem.from_arrays(wide, np.array([0, 1]), np.eye(3), wide)
    with refused("features-needed"):
        quick(name).fit(problem)
