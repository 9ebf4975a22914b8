"""Refinement of the pool's scores: one function under a name, for every method."""

import numpy as np
import pytest

from pren.errors import PrenError
from pren.methods.registry import METHODS
from pren.problem import candidates_of
from pren.refinement import REFINEMENTS, ScoredPool, register_refinement


@register_refinement("toy-neighbours")
def mean_with_nearest(pool: ScoredPool):
    """Every image takes the mean of its own scores and those of the image next to it."""
    distances = ((pool.features[:, None] - pool.features) ** 2).sum(axis=-1)
    np.fill_diagonal(distances, np.inf)
    return (pool.scores + pool.scores[distances.argmin(axis=1)]) / 2


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_a_refinement_works_for_every_method(name, setting, quick, make_problem):
    problem = make_problem(setting=setting, n_seen=3, n_unseen=3)
    model = quick(name).fit(problem)
    plain = model.scores(problem.pool)
    features = model._features(problem.pool)
    seen = []
    for i, row in enumerate(features):
        others = [j for j in range(len(features)) if j != i]
        seen.append(min(others, key=lambda j: ((row - features[j]) ** 2).sum()))
    refined = model.set_params(refinement="toy-neighbours", gamma=0.5).pool_scores(problem.pool)
    gamma = 0.5 * problem.classes.seen if setting == "gzsl" else 0.0
    assert np.allclose(refined, (plain + plain[seen]) / 2 - gamma)


def test_new_images_are_scored_without_the_pool(quick, make_problem):
    problem = make_problem()
    model = quick("eszsl", refinement="toy-neighbours").fit(problem)
    alone = np.concatenate([model.scores(problem.pool[np.array([place])]) for place in range(len(problem.pool))])
    assert np.allclose(alone, model.scores(problem.pool))
    assert not np.allclose(alone, model.pool_scores(problem.pool))


def test_a_refinement_is_told_the_candidates(quick, make_problem, monkeypatch):
    told = []
    monkeypatch.setitem(REFINEMENTS._entries, "toy-spy", lambda pool: (told.append(pool), pool.scores)[1])
    for setting in ("zsl", "gzsl"):
        problem = make_problem(setting=setting)
        quick("eszsl", refinement="toy-spy").fit(problem).pool_scores(problem.pool)
        assert np.array_equal(told[-1].candidates, problem.classes.among(candidates_of(setting)))


def test_none_leaves_the_scores(quick, make_problem):
    problem = make_problem()
    model = quick("eszsl").fit(problem)
    assert np.array_equal(model.pool_scores(problem.pool), model.scores(problem.pool))


def test_an_unknown_one_is_refused(quick, make_problem):
    with pytest.raises(PrenError, match=r"no refinement 'nun'\. Did you mean none"):
        quick("eszsl", refinement="nun")
