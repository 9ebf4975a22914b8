"""Whether a pool is mixed: the estimate by its formula, and what it finds in pools whose classes are known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.trust.mixed import LEAST, NEAR, Mixed, estimate, known_of, mixed
from pren.trust.shift import MovedInputs


@given(share=st.floats(0, 1), seed=st.integers(0, 999))
def test_shares_are_found_again(share, seed):
    rng = np.random.default_rng(seed)
    own, others = rng.normal(0, 1, 4000), [rng.normal(3, 1, 3000) for _ in range(3)]
    count = round(share * 4000)
    pool = np.concatenate([rng.normal(0, 1, count), rng.normal(3, 1, 4000 - count)])
    found = estimate([own[:2000], own[2000:]], others, pool)
    assert found.share == pytest.approx(share, abs=0.06)
    limit = sorted(own)[int(NEAR * 4000)]
    p, q, near = ((part <= limit).mean() for part in (own, np.concatenate(others), pool))
    assert found.share == pytest.approx(min(max((near - q) / (p - q), 0), 1), abs=0.01)
    assert found.likely == (found.share > max(LEAST, 2 * found.error))


def test_where_nothing_tells_them_apart_nothing_is_claimed():
    rng = np.random.default_rng(0)
    found = estimate([rng.random(50)], [rng.random(50), rng.random(50)], rng.random(50))
    assert not found.likely


@pytest.fixture(scope="module")
def made(make_problem):
    return {
        setting: make_problem(n_seen=12, n_unseen=6, shape=(16,), per_class=30, pool_per_class=20, setting=setting)
        for setting in ("zsl", "gzsl")
    }


def test_a_mixed_pool_is_told_from_one_of_unseen_classes(made):
    pure, both = mixed(made["zsl"]), mixed(made["gzsl"])
    assert not pure.likely
    assert both.likely
    assert both.share == pytest.approx(2 / 3, abs=0.15)
    assert "zsl" in pure.sentence()
    assert f"{round(both.share * 360)} of 360" in both.sentence()


def test_the_setting_and_the_order_of_the_classes_do_not_matter(made, make_problem):
    found = mixed(made["gzsl"])
    assert mixed(replace(made["gzsl"], setting="zsl")) == found
    order = np.random.default_rng(0).permutation(18)
    again = mixed(
        make_problem(n_seen=12, n_unseen=6, shape=(16,), per_class=30, pool_per_class=20, setting="gzsl", order=order)
    )
    assert again.share == pytest.approx(found.share, abs=1e-9)


def test_what_cannot_be_known(made, make_problem):
    assert mixed(make_problem(n_seen=3)) is None
    assert mixed(make_problem(n_seen=6, shape=(1, 4, 4))) is None
    far = replace(made["gzsl"], pool=MovedInputs(made["gzsl"].pool, np.linspace(-30, 30, 16)))
    assert mixed(far) is None


def test_it_comes_back_from_the_record():
    found = Mixed(share=0.25, error=0.01, inputs=40)
    assert known_of({"mixed": found.model_dump()}) == found
    assert known_of({}) is None
