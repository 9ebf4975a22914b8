"""The closed form of ridge regression from signatures to features, against scikit-learn's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from pren.methods.rivals.ridge import RidgeS2V
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs


def random_problem(seed, per_class=(1, 2, 9)):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(per_class)), per_class)
    features = rng.normal(size=(len(labels), 5)).astype(np.float32)
    return Problem.from_arrays(features, labels, rng.random((6, 4)) + 0.1, rng.normal(size=(7, 5)))


def class_means(problem):
    x = problem.train[np.arange(len(problem.train))].double().numpy()
    return np.stack([x[problem.labels == c].mean(axis=0) for c in range(3)])


@given(st.integers(0, 10**6), st.floats(1e-3, 1e2))
def test_the_closed_form_is_scikit_learns(seed, reg):
    problem = random_problem(seed)
    expected = Ridge(alpha=reg, fit_intercept=False).fit(problem.classes.signatures[:3], class_means(problem)).coef_.T
    weights = RidgeS2V(reg=reg, features="raw").fit(problem).weights_
    assert np.allclose(weights, expected, rtol=1e-6, atol=1e-8)


def test_every_class_counts_the_same():
    problem = random_problem(0)
    once = Problem(ArrayInputs(class_means(problem)), np.arange(3), problem.pool, problem.classes)
    one, other = (RidgeS2V(features="raw").fit(given).weights_ for given in (problem, once))
    assert np.allclose(one, other, atol=1e-6)  # the means went through single precision


def test_scores_are_cosines_or_distances(whole):
    problem = random_problem(0)
    for distance in ("cosine", "euclid"):
        model = RidgeS2V(distance=distance, features="raw").fit(problem)
        scores = model.scores(problem.pool)
        for i, x in enumerate(whole(problem.pool).astype(np.float64)):
            for c, a in enumerate(problem.classes.signatures):
                mean = a @ model.weights_
                cosine = x @ mean / np.linalg.norm(x) / np.linalg.norm(mean)
                assert np.isclose(scores[i, c], cosine if distance == "cosine" else -np.linalg.norm(x - mean))
