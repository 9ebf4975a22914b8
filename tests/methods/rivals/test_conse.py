"""ConSE's mixtures of signatures, image by image."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from pren.methods.formulas import on_arrays
from pren.methods.rivals.conse import ConSE, mixture


def on_mixture(p, signatures, top):
    return on_arrays(lambda *tensors: mixture(*tensors, top), p, signatures)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 4), st.integers(1, 8), st.integers(0, 10**6))
def test_a_mixture_is_that_of_a_loop(n, C, m, top, seed):
    rng = np.random.default_rng(seed)
    p, signatures = softmax(rng.normal(size=(n, C)), axis=1), rng.normal(size=(C, m))
    mixed = on_mixture(p, signatures, top)
    for i in range(n):
        best = sorted(range(C), key=lambda c, i=i: -p[i, c])[:top]
        expected = sum(p[i, c] * signatures[c] for c in best) / sum(p[i, c] for c in best)
        assert np.allclose(mixed[i], expected)


def test_the_best_class_alone_has_its_own_signature():
    signatures = np.random.default_rng(0).random((3, 4))
    assert np.allclose(on_mixture(np.array([[0.2, 0.5, 0.3]]), signatures, 1), signatures[[1]])


def test_equal_probabilities_do_not_make_a_mixture_larger():
    assert sorted(on_mixture(np.full((1, 4), 0.25), np.eye(4), 2)[0]) == [0, 0, 0.5, 0.5]


def test_scores_are_cosines_with_the_mixture(make_problem, whole):
    problem = make_problem(n_seen=6)
    model = ConSE(top=2, features="raw").fit(problem)
    names = sorted(name for name, seen in zip(problem.classes.names, problem.classes.seen, strict=True) if seen)
    A = np.stack([problem.classes.signatures[problem.classes.names.index(name)] for name in names])
    p = softmax(whole(problem.pool).astype(np.float64) @ model.weights_.T, axis=1)
    scores = model.scores(problem.pool)
    for i, f in enumerate(on_mixture(p, A, 2)):
        for c, a in enumerate(problem.classes.signatures):
            assert np.isclose(scores[i, c], f @ a / np.linalg.norm(f) / np.linalg.norm(a))


def test_the_training_images_are_learned(make_problem):
    problem = make_problem(per_class=10)
    model = ConSE(top=1).fit(problem)
    assert (model.predict(problem.train, among="seen") == problem.classes.named(problem.labels)).mean() > 0.9


def test_more_classes_than_there_are_mean_all(make_problem):
    problem = make_problem()
    some, more = (ConSE(top=top).fit(problem).scores(problem.pool) for top in (4, 10**6))
    assert np.array_equal(some, more)
