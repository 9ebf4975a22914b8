"""The Gaussian process from signatures to means: against loops, leaving classes out in earnest, and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from pren.methods.gaussian_process import NOISES, guess_means, kernel, kernel_width, scaled, told

sizes = st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))


def classes(n, m, u, seed, d=3):
    """Known signatures, their means, which partly follow from them, and wanted signatures."""
    rng = np.random.default_rng(seed)
    known = rng.normal(size=(n, m))
    return known, known @ rng.normal(size=(m, d)) + 0.5 * rng.normal(size=(n, d)) + 1, rng.normal(size=(u, m))


def plain_kernel(a, b, h):
    return 1 + sum(x * y for x, y in zip(a, b, strict=True)) + np.exp(-sum((a - b) ** 2) / h)


def plain_guess(known, values, wanted):
    """ν by leaving classes out one after the other, s by the sizes of the errors, and a plain solve."""
    n, d = values.shape
    known, wanted = scaled(known, wanted)
    h = kernel_width(known)
    K = np.array([[plain_kernel(a, b, h) for b in known] for a in known])
    best, chosen = np.inf, None
    for ν in NOISES:
        squared, relative = 0.0, 0.0
        for i in range(n):
            rest = [j for j in range(n) if j != i]
            solved = np.linalg.solve(K[np.ix_(rest, rest)] + ν * np.eye(n - 1), np.c_[values[rest], K[rest, i]])
            error = values[i] - K[i, rest] @ solved[:, :d]
            expected = K[i, i] + ν - K[i, rest] @ solved[:, d]  # its variance, but for s
            squared += sum(error**2)
            relative += sum(error**2) / expected
        if squared < best:
            best, chosen = squared, (ν, relative / (n * d))
    ν, s = chosen
    across = np.array([[plain_kernel(a, b, h) for b in known] for a in wanted])
    among = np.array([[plain_kernel(a, b, h) for b in wanted] for a in wanted])
    noisy = K + ν * np.eye(n)
    covariance = among + ν * np.eye(len(wanted)) - across @ np.linalg.solve(noisy, across.T)
    return across @ np.linalg.solve(noisy, values), s * covariance, ν, s


@settings(max_examples=25)
@given(sizes)
def test_the_kernel_is_that_of_a_loop(size):
    a, _, b = classes(*size)
    expected = [[plain_kernel(row, column, 0.7) for column in b] for row in a]
    assert np.allclose(kernel(a, b, 0.7), expected)


def test_signatures_are_scaled_by_the_known_ones():
    known, _, wanted = classes(7, 3, 2, 0)
    one, two = scaled(5 * known + 3, 5 * wanted + 3)
    centre = sum(known) / 7
    length = (sum(sum((row - centre) ** 2) for row in known) / 7) ** 0.5
    assert np.allclose(one, [(row - centre) / length for row in known])
    assert np.allclose(two, [(row - centre) / length for row in wanted])


def test_the_width_is_the_median_of_all_pairs():
    known, _, _ = classes(6, 3, 1, 0)
    apart = sorted(sum((known[i] - known[j]) ** 2) for i in range(6) for j in range(i))
    assert np.isclose(kernel_width(known), apart[7])  # of fifteen
    assert kernel_width(known[:1]) == 1.0


@settings(max_examples=25)
@given(st.integers(3, 9), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_the_guess_is_that_of_plain_solves(n, m, u, seed):
    known, values, wanted = classes(n, m, u, seed)
    means, covariance, _, _ = plain_guess(known, values, wanted)
    guess = guess_means(known, values, wanted)
    assert np.allclose(guess.means, means, rtol=1e-6, atol=1e-6)
    assert np.allclose(guess.covariance, covariance, rtol=1e-6, atol=1e-6)


def test_the_guess_is_that_of_scikit_learn():
    known, values, wanted = classes(12, 4, 3, 1)
    _, _, ν, s = plain_guess(known, values, wanted)
    guess = guess_means(known, values, wanted)
    known, wanted = scaled(known, wanted)
    local = RBF((kernel_width(known) / 2) ** 0.5)  # scikit-learn has 2 l² where we have h
    regressor = GaussianProcessRegressor(
        ConstantKernel(s) * (DotProduct(1.0) + local + WhiteKernel(ν)), optimizer=None, alpha=1e-12
    )
    means, covariances = regressor.fit(known, values).predict(wanted, return_cov=True)
    assert np.allclose(guess.means, means, rtol=1e-5, atol=1e-6)
    assert np.allclose(guess.covariance, covariances[..., 0], rtol=1e-5, atol=1e-6)


def test_s_makes_errors_as_large_as_expected():
    """Means drawn from the process itself, many of them: the covariance is that of the errors."""
    rng = np.random.default_rng(0)
    known, wanted = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
    both = np.concatenate(scaled(known, wanted))
    truth = 5 * (kernel(both, both, kernel_width(both[:30])) + NOISES[8] * np.eye(34))
    means = np.linalg.cholesky(truth) @ rng.normal(size=(34, 4000))
    guess = guess_means(known, means[:30], wanted)
    errors = means[30:] - guess.means
    assert np.allclose(guess.covariance, errors @ errors.T / 4000, rtol=0.1, atol=0.3)
    assert np.isclose(np.trace(guess.covariance), (errors**2).sum() / 4000, rtol=0.05)


@pytest.mark.parametrize("place", ["known", "wanted"])
@settings(max_examples=25)
@given(size=sizes, data=st.data())
def test_the_order_of_the_classes_means_nothing(place, size, data):
    known, values, wanted = classes(*size)
    guess = guess_means(known, values, wanted)
    order = data.draw(st.permutations(range(len(known if place == "known" else wanted))))
    if place == "known":
        again, expected = guess_means(known[order], values[order], wanted), guess
    else:
        again = guess_means(known, values, wanted[order])
        expected = guess._replace(means=guess.means[order], covariance=guess.covariance[np.ix_(order, order)])
    assert np.allclose(again.means, expected.means)
    assert np.allclose(again.covariance, expected.covariance)


def alike(n, seed):
    """n equal signatures, whose mean need not be one of them to the last digit."""
    row = np.random.default_rng(seed).random(4)
    return np.tile(row / np.linalg.norm(row), (n, 1))


def sound(guess):
    assert np.isfinite(guess.means).all()
    assert np.allclose(guess.covariance, guess.covariance.T, rtol=1e-9)
    assert np.linalg.eigvalsh(guess.covariance).min() > 0
    assert np.linalg.cond(guess.covariance) < 1e8


@settings(max_examples=50)
@given(sizes, st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
def test_a_covariance_is_symmetric_and_has_an_inverse(size, scale):
    known, values, wanted = classes(*size)
    sound(guess_means(known, scale * values, wanted))


def test_many_more_classes_than_attributes():
    sound(guess_means(*classes(200, 2, 50, 0)))


@pytest.mark.parametrize("seed", range(10))
def test_one_known_class_is_what_all_others_resemble(seed):
    """There is nothing to choose ν by: rounding must not."""
    known, values, wanted = classes(1, 4, 3, seed)
    guess = guess_means(known, values, wanted)
    sound(guess)
    for factor in (3.0, 0.1, 1e-3):
        again = guess_means(known, factor * values, wanted)
        assert np.allclose(again.means, factor * guess.means)
        assert np.allclose(again.covariance, factor**2 * guess.covariance)
    assert np.allclose(guess_means(known, values, known).means, values * 2 / (2 + NOISES[0]))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n", [2, 3, 7])
def test_equal_known_signatures_tell_nothing_and_do_no_harm(n, seed):
    rng = np.random.default_rng(seed)
    known, values = alike(n, seed), rng.normal(size=(n, 3))
    wanted = np.concatenate([rng.random((3, 4)), known[:1]])
    assert np.allclose(scaled(known, wanted)[1], wanted - known[0])
    guess = guess_means(known, values, wanted)
    sound(guess)
    assert np.abs(guess.means).max() < 10 * np.abs(values).max()


@pytest.mark.parametrize("seed", range(30))
def test_mostly_equal_signatures_leave_a_width_that_is_no_rounding(seed):
    known = np.concatenate([alike(6, seed), alike(1, seed + 100)])
    assert kernel_width(scaled(known, known)[0]) == 1.0
    rng = np.random.default_rng(seed)
    sound(guess_means(known, rng.normal(size=(7, 3)), rng.random((3, 4))))


def test_two_equal_wanted_signatures_have_the_same_guess_and_each_its_own_doubt():
    known, values, wanted = classes(6, 3, 2, 0)
    guess = guess_means(known, values, wanted[[0, 1, 0]])
    sound(guess)
    assert np.allclose(guess.means[0], guess.means[2])
    assert np.isclose(guess.covariance[0, 0], guess.covariance[2, 2])
    assert guess.covariance[0, 2] < guess.covariance[0, 0]


def test_means_that_are_all_zero_are_guessed_to_be_zero():
    known, values, wanted = classes(6, 3, 2, 0)
    guess = guess_means(known, 0 * values, wanted)
    sound(guess)
    assert not guess.means.any()


@settings(max_examples=20)
@given(st.tuples(st.integers(2, 8), st.integers(1, 4), st.just(1), st.integers(0, 99)))
def test_what_signatures_tell_is_what_is_left_of_the_errors_of_the_mean_of_the_others(size):
    known, values, _ = classes(*size)
    n, ours, usual = len(known), [], 0.0
    apart = scaled(known, known)[0]
    K = np.array([[plain_kernel(a, b, kernel_width(apart)) for b in apart] for a in apart])
    for ν in NOISES:
        error = 0.0
        for i in range(n):
            rest = [j for j in range(n) if j != i]
            error += sum(
                (values[i] - K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + ν * np.eye(n - 1), values[rest])) ** 2
            )
        ours.append(error)
    for i in range(n):
        usual += sum((values[i] - np.mean([values[j] for j in range(n) if j != i], axis=0)) ** 2)
    assert told(known, values) == pytest.approx(1 - min(ours) / usual, rel=1e-6, abs=1e-9)


def test_of_equal_means_nothing_is_told():
    assert told(np.eye(3), np.ones((3, 2))) == 0.0
