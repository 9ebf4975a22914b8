"""Losses of linear classifiers against plain loops and autograd, and their optimum against scikit-learn's."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from pren.methods.rivals.classifiers import (
    crammer_singer,
    cross_entropy,
    fit_classifiers,
    one_versus_other,
    weighted_one_versus_other,
)


def slow_softmax(F, y, margins):
    return sum(torch.log(sum(torch.exp(f) for f in row)) - row[label] for row, label in zip(F, y, strict=True)) / len(F)


def slow_one_versus_other(F, y, margins):
    total = torch.zeros(())
    for row, label in zip(F, y, strict=True):
        for c, f in enumerate(row):
            total = total + (1 - (f if c == label else -f)).clamp(min=0) ** 2
    return total / F.numel()


def slow_crammer_singer(F, y, margins):
    total = torch.zeros(())
    for row, label in zip(F, y, strict=True):
        worst = torch.zeros(())
        for c, f in enumerate(row):
            if c != label and margins[label][c] + f - row[label] > worst:
                worst = margins[label][c] + f - row[label]
        total = total + worst**2
    return total / len(F)


@pytest.mark.parametrize(
    ("loss", "slow"),
    [
        (lambda margins: cross_entropy, slow_softmax),
        (lambda margins: one_versus_other, slow_one_versus_other),
        (crammer_singer, slow_crammer_singer),
    ],
    ids=["softmax", "one versus other", "crammer-singer"],
)
@given(n=st.integers(1, 6), C=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_a_loss_and_its_gradient_are_those_of_a_loop(loss, slow, n, C, seed):
    rng = np.random.default_rng(seed)
    F, y, margins = 2 * rng.normal(size=(n, C)), rng.integers(0, C, size=n), 0.1 + rng.random((C, C))
    value, gradient = loss(margins)(F, y)
    scores = torch.from_numpy(F).requires_grad_()
    expected = slow(scores, y, margins)
    assert np.isclose(value, expected.item())
    slope = torch.autograd.grad(expected, scores)[0] if expected.requires_grad else torch.zeros(n, C)
    assert np.allclose(gradient, slope)


def test_an_image_counts_as_often_as_it_weighs():
    rng = np.random.default_rng(0)
    F, y, weights = rng.normal(size=(4, 3)), np.array([0, 2, 1, 1]), np.array([1, 3, 0, 2])
    value, gradient = weighted_one_versus_other(weights.astype(float))(F, y)
    repeated, slopes = one_versus_other(np.repeat(F, weights, axis=0), np.repeat(y, weights))
    assert np.isclose(value, repeated * 3 * weights.sum())
    once = np.stack([slopes[0], slopes[1], np.zeros(3), slopes[4]]) * 3 * weights.sum()
    assert np.allclose(gradient, weights[:, None] * once)


def test_equally_bad_classes_share_the_blame():
    value, gradient = crammer_singer(np.ones((3, 3)))(np.zeros((1, 3)), np.array([1]))
    assert value == 1
    assert np.array_equal(gradient, [[1.0, -2.0, 1.0]])


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return rng.normal(size=(3, 4))[y] + rng.normal(size=(60, 4)), y


def test_softmax_classifiers_are_a_logistic_regression(images):
    X, y = images
    reg = 0.05
    expected = LogisticRegression(C=1 / (len(X) * reg), fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, y).coef_
    assert np.allclose(fit_classifiers(X, y, 3, cross_entropy, reg, 1000), expected, atol=1e-4)


def test_one_versus_other_classifiers_are_linear_svms(images):
    X, y = images
    reg = 0.05
    machine = LinearSVC(C=1 / (X.shape[0] * 3 * reg), fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)
    assert np.allclose(fit_classifiers(X, y, 3, one_versus_other, reg, 1000), machine.coef_, atol=1e-4)


def test_crammer_and_singers_optimum_is_one(images):
    """No way leads further down from it."""
    X, y = images
    loss, reg = crammer_singer(np.ones((3, 3))), 0.05

    def objective(W):
        return loss(X @ W.T, y)[0] + reg / 2 * np.square(W).sum()

    W = fit_classifiers(X, y, 3, loss, reg, 1000)
    assert objective(W) < 0.7 * objective(np.zeros((3, 4)))
    rng = np.random.default_rng(0)
    assert all(objective(W + 1e-2 * rng.normal(size=W.shape)) > objective(W) for _ in range(200))


def test_few_iterations_do_not_go_all_the_way(images):
    X, y = images
    few, many = (fit_classifiers(X, y, 3, cross_entropy, 0.05, iterations) for iterations in (1, 100))
    assert not np.allclose(few, many, atol=1e-2)
