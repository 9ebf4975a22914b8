"""How sure names are: the formula by plain loops, what raises and lowers it, and what it does to labels."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from pren.methods.pren_vote import PrENVote
from pren.methods.storage import read_model, write_model
from pren.problem import UNKNOWN
from pren.trust import TRUST_FILE, Trust, assess, label_pool
from pren.trust.forecast import DRAWS, range_of
from pren.trust.names import CHECK, FEW, GIVEN, LARGE, LEAST_DOUBT, OFFSET, SLOPE, UNEVEN, Names, well_named

seeds = st.integers(0, 10**6)


def drawn(rng, L=6, unseen=4):
    """Names of the first classes, and their sizes; the others are seen classes."""
    shares = np.zeros((L, L))
    shares[:unseen, :unseen] = rng.dirichlet(np.full(unseen, 0.3), unseen)
    return Names(shares, rng.integers(0, 60, L), rng.integers(0, 2, L) * rng.integers(0, 2, L), rng.normal())


@given(seed=seeds)
def test_certainty_by_a_plain_loop(seed):
    names = drawn(np.random.default_rng(seed))
    sizes = [int(size) for row, size in enumerate(names.sizes) if row < 4]
    there = sorted(size for size in sizes if size)
    found = names.certainty()
    for row in range(6):
        if row >= 4:
            assert found[row] == 1
            continue
        usual = min(float(np.median(there)), sum(sizes) / 4) if there else math.nan
        odd = bool(there) and (sizes[row] > LARGE * usual or sizes[row] < FEW * usual)
        agreement = min(max(names.shares[row, row], LEAST_DOUBT), 1 - LEAST_DOUBT)
        logit = names.surer + OFFSET + SLOPE * math.log(agreement / (1 - agreement))
        logit += (UNEVEN if odd else 0) + (GIVEN if names.given[row] else 0)
        assert found[row] == pytest.approx(1 / (1 + math.exp(-logit)))
        asked = bool(names.sizes[row]) and found[row] < CHECK and not names.given[row]
        assert names.to_check()[row] == asked


@given(seed=seeds)
def test_the_order_of_the_classes_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    names, order = drawn(rng), rng.permutation(6)
    moved = Names(names.shares[np.ix_(order, order)], names.sizes[order], names.given[order], names.surer)
    assert moved.certainty() == pytest.approx(names.certainty()[order])
    for one, other in zip(moved.odd(), names.odd(), strict=True):
        assert np.array_equal(one, other[order])


def test_full_agreement_is_no_proof_and_two_groups_have_no_usual_size():
    names = Names(np.eye(2), np.array([90, 3]), np.zeros(2, dtype=int))
    assert (names.certainty() < 0.98).all()
    assert not any(part.any() for part in names.odd())


@given(seed=seeds)
def test_groups_are_matched_with_names_so_that_most_labels_are_right(seed):
    """Swapped groups are well placed; a label that is right by itself may lose its name to a larger part."""
    rng = np.random.default_rng(seed)
    seen, truth = np.arange(5) >= 4, rng.integers(0, 5, 60)
    swap = rng.permutation(4)
    swapped = np.append(swap, 4)[truth]
    assert np.array_equal(well_named(swapped, truth, seen), truth)
    noisy = np.where(rng.random(60) < 0.3, rng.integers(0, 5, 60), swapped)
    assert (well_named(noisy, truth, seen) == truth).sum() >= (noisy == truth).sum()
    assert np.array_equal(well_named(noisy, truth, seen)[noisy == 4], noisy[noisy == 4])


@settings(max_examples=20)
@given(seed=seeds)
def test_the_range_holds_four_of_five_draws(seed):
    rng = np.random.default_rng(seed)
    weights, certainty = rng.dirichlet(np.ones(5)), rng.uniform(0.1, 0.9, 5)
    low, high = range_of(weights, certainty, 0.05, 18, 0.0)
    assert (low, high) == range_of(weights, certainty, 0.05, 18, 0.0)
    shares = [
        sum(w for w, c in zip(weights, certainty, strict=True) if rng.random() < c) + 0.05 * rng.standard_t(18)
        for _ in range(1000)
    ]
    inside = np.mean([low <= share <= high for share in shares])
    assert abs(inside - 0.8) < 5 * (0.16 * (1 / 1000 + 1 / DRAWS)) ** 0.5 + 0.01


@pytest.mark.parametrize("certainty", [0.0, 1.0])
def test_doubt_is_what_makes_it_wide(certainty):
    weights = np.full(4, 0.25)
    sure = range_of(weights, np.full(4, certainty), 0.05, 18, 0.5)
    unsure = range_of(weights, np.full(4, 0.5), 0.05, 18, 0.5)
    together = range_of(weights, np.full(4, 0.5), 0.05, 18, 2.0)
    assert sure[1] - sure[0] < unsure[1] - unsure[0] < together[1] - together[0]


@pytest.fixture(scope="module")
def problem(make_problem):
    return make_problem(n_seen=9, n_unseen=4)


@pytest.fixture(scope="module")
def fitted(problem):
    return PrENVote(heads=20).fit(problem)


@pytest.fixture(scope="module")
def trust(fitted, problem):
    return assess(fitted, problem, 3)


def test_confidence_is_that_of_the_place_times_that_of_the_name(problem, fitted, trust):
    labels = label_pool(fitted.scores, problem, trust)
    names = Names.of(fitted, labels.classes, problem)
    assert np.array_equal(trust.names, names.certainty())
    unsure = label_pool(fitted.scores, problem, Trust(trust.forecast, trust.confidence, trust.levels, (5,)))
    expected = unsure.confidence * names.certainty()[labels.classes]
    known = labels.familiarity >= 0.01
    assert labels.confidence[known] == pytest.approx(expected[known])
    assert (labels.confidence < unsure.confidence).all()
    assert trust.forecast.names == int(names.there.sum())
    assert trust.forecast.doubtful == int(names.to_check().sum())


def test_it_is_kept_with_the_model(problem, fitted, trust, tmp_path):
    fitted.save(tmp_path)
    trust.save(tmp_path)
    assert np.array_equal(Trust.load(tmp_path).names, trust.names)
    tensors, facts = read_model(tmp_path / TRUST_FILE)
    write_model(tmp_path / TRUST_FILE, tensors, {**facts, "names": facts["names"][1:]})
    with refused("damaged"):
        Trust.load(tmp_path)


def test_a_given_label_makes_a_name_sure(problem, fitted):
    row = int(np.flatnonzero(problem.classes.unseen)[0])
    labels = np.full(len(problem.pool), row)
    given = np.full(len(problem.pool), UNKNOWN)
    given[3] = row

    before = Names.of(fitted, labels, problem)
    after = Names.of(fitted, labels, replace(problem, given=given))
    assert after.certainty()[row] > before.certainty()[row]
    assert not after.to_check()[row]
