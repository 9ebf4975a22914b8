"""LatEm's maps: which of them a step changes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pren.methods.rivals.devise import DeViSE
from pren.methods.rivals.latem import LatEm


@given(st.integers(1, 5), st.integers(1, 6), st.floats(0.1, 5), st.integers(0, 10**6))
def test_every_violated_margin_counts_as_in_devise(n, L, margin, seed):
    rng = np.random.default_rng(seed)
    F, y = torch.from_numpy(rng.normal(size=(n, L))), torch.from_numpy(rng.integers(0, L, size=n))
    assert torch.equal(LatEm(margin=margin)._loss(F, y), DeViSE(margin=margin)._loss(F, y))


@pytest.mark.parametrize("maps", [1, 3])
def test_the_first_step_changes_the_maps_that_were_the_best(first_step, maps):
    def direction(W, x, A, y):
        def best(c):
            return max(range(maps), key=lambda k: x @ W[k] @ A[c])

        step = np.zeros_like(W)
        for c in range(len(A)):
            if c != y and 0.5 + x @ W[best(c)] @ A[c] > x @ W[best(y)] @ A[y]:
                step[best(c)] -= np.outer(x, A[c])
                step[best(y)] += np.outer(x, A[y])
        return step

    first_step(LatEm, direction, maps=maps, margin=0.5)


def test_one_map_is_devise(make_problem):
    problem = make_problem()
    one, other = (model.fit(problem).scores(problem.pool) for model in (LatEm(maps=1), DeViSE()))
    assert np.array_equal(one, other)


def test_scores_are_those_of_the_best_map(make_problem, whole):
    problem = make_problem()
    model = LatEm(maps=3, features="raw").fit(problem)
    scores, pool = model.scores(problem.pool), whole(problem.pool).astype(np.float64)
    for i, x in enumerate(pool):
        for c, a in enumerate(problem.classes.signatures):
            assert np.isclose(scores[i, c], max(x @ W @ a for W in model.weights_))
