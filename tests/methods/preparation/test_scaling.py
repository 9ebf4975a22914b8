"""Preparation of features, against plain NumPy and plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as any_array

from pren.methods.formulas import unit
from pren.methods.preparation import PREPARATIONS
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs

KINDS = ("raw", "l2", "standard", "minmax")
tables = any_array(
    np.float32, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.floats(-1e6, 1e6, width=32)
)


def fit(kind, table):
    """A preparation that has learned from labelled images; the pool is something else."""
    pool = np.full_like(table[:1], 77)
    return PREPARATIONS[kind].fit(Problem.from_arrays(table, np.zeros(len(table), dtype=int), np.eye(2), pool))


def features(n=2500, d=4):
    """More than two chunks of features of unlike sizes, the last of which never varies."""
    table = np.random.default_rng(0).normal(3, [1e-3, 1, 50, 0][:d], size=(n, d)).astype(np.float32)
    table[:, -1] = 0.1
    return table


def test_standard_features_have_mean_0_and_variance_1():
    table = features()
    scaled = fit("standard", table).of(ArrayInputs(table))
    x = table[:, :3].astype(np.float64)
    assert np.allclose(scaled[:, :3], (x - x.mean(axis=0)) / x.std(axis=0), rtol=1e-9, atol=1e-9)
    assert (scaled[:, 3] == 0).all()


def test_minmax_features_go_from_0_to_1():
    table = features()
    scaled = fit("minmax", table).of(ArrayInputs(table))
    assert (scaled.min(axis=0) == 0).all()
    assert np.allclose(scaled.max(axis=0), [1, 1, 1, 0], rtol=1e-12)
    x = table.astype(np.float64)
    assert np.allclose(scaled[:, 1], (x[:, 1] - x[:, 1].min()) / (x[:, 1].max() - x[:, 1].min()))


def test_l2_gives_each_image_unit_length():
    table = features(n=5)
    table[2] = 0
    scaled = fit("l2", table).of(ArrayInputs(table))
    for row, given_row in zip(scaled, table.astype(np.float64), strict=True):
        length = sum(value**2 for value in given_row) ** 0.5
        assert np.allclose(row, given_row / length if length else 0.0)


def test_raw_features_stay_as_they_are():
    table = features()
    assert np.array_equal(fit("raw", table).of(ArrayInputs(table)), table.astype(np.float64))


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learned_is_not_learned_again_from_other_inputs(kind):
    table, other = features(), np.full((3, 4), 7, dtype=np.float32)
    scaler = fit(kind, table)
    together = scaler.of(ArrayInputs(np.concatenate([table, other])))
    assert np.array_equal(together[:-3], scaler.of(ArrayInputs(table)))
    assert np.array_equal(together[-3:], scaler.of(ArrayInputs(other)))


@pytest.mark.parametrize("kind", KINDS)
def test_images_are_flat_pixels(kind):
    images = np.random.default_rng(0).random((6, 1, 2, 3)).astype(np.float32)
    flat = images.reshape(6, -1)
    scaled = fit(kind, images).of(ArrayInputs(images))
    assert np.array_equal(scaled, fit(kind, flat).of(ArrayInputs(flat)))


@pytest.mark.parametrize("kind", KINDS)
def test_no_inputs_at_all_stay_none(kind):
    scaler = fit(kind, features())
    assert scaler.of(ArrayInputs(np.empty((0, 4), dtype=np.float32))).shape == (0, 4)


@given(tables, st.sampled_from(KINDS))
def test_any_features_can_be_scaled(table, kind):
    scaled = fit(kind, table).of(ArrayInputs(table))
    assert scaled.shape == table.shape
    assert np.isfinite(scaled).all()
    if kind == "standard":  # n values of variance 1 are within √n of their mean
        assert (np.abs(scaled) <= 1.01 * len(table) ** 0.5).all()
    if kind == "minmax":
        assert ((scaled >= 0) & (scaled <= 1 + 1e-9)).all()


@given(st.integers(1, 3000), st.floats(-1e6, 1e6, width=32))
def test_a_feature_that_never_varies_becomes_0(n, value):
    table = np.full((n, 1), value, dtype=np.float32)
    for kind in ("standard", "minmax"):
        assert (fit(kind, table).of(ArrayInputs(table)) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learned_comes_back_to_the_bit(kind):
    inputs, learned = ArrayInputs(features()), fit(kind, features())
    assert np.array_equal(PREPARATIONS[kind].restore(learned.arrays, 4).of(inputs), learned.of(inputs))


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_what_does_not_belong_to_the_features_is_refused(kind):
    arrays, known = fit(kind, features()).arrays, PREPARATIONS[kind]
    for d in (3, 5):
        with pytest.raises(ValueError, match="cannot be of shape"):
            known.restore(arrays, d)
    for key in arrays:
        with pytest.raises(ValueError, match="holds"):
            known.restore({other: arrays[other] for other in arrays if other != key}, 4)
    with pytest.raises(ValueError, match="holds"):
        PREPARATIONS["raw"].restore(arrays, 4)


def test_unit_leaves_zeros_alone():
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]], dtype=torch.float64)
    assert unit(rows).tolist() == [[0.6, 0.8], [0.0, 0.0], [-1.0, 0.0]]
