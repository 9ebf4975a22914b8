"""A forecast: a range around what the labels' confidence says, as wide as rehearsals were missed by."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from pren.trust.confidence import Confidence, Reading
from pren.trust.forecast import MISS_OF_ANOTHER_KIND, USUAL_MISS, WORTH, Known, foretell
from pren.trust.names import LARGE, Names


def pool(rng, count, difficulty):
    """Labels whose lead tells how likely they are right."""
    lead = rng.random(count) * difficulty
    right = rng.random(count) < lead
    return Known(Reading(np.zeros(count, dtype=np.int64), lead, np.zeros(count, dtype=bool)), right, right)


@pytest.fixture
def rehearsals():
    rng = np.random.default_rng(0)
    return [pool(rng, 300, difficulty) for difficulty in (0.7, 0.9, 1.0, 0.8)]


def expected(reading, known):
    return np.mean(Confidence.learn([one.reading for one in known], [one.right for one in known]).of(reading))


def test_by_plain_loops(rehearsals):
    asked = pool(np.random.default_rng(1), 200, 0.9).reading
    misses = []
    for place, left_out in enumerate(rehearsals):
        others = [known for other, known in enumerate(rehearsals) if other != place]
        misses.append(np.mean(left_out.right) - expected(left_out.reading, others))
    freedom = WORTH + 4
    spread = ((WORTH * USUAL_MISS**2 + sum(miss**2 for miss in misses)) / freedom) ** 0.5
    found = foretell(asked, rehearsals, held_out=7)
    middle, half = expected(asked, rehearsals), t.ppf(0.9, freedom) * spread
    assert (found.low, found.expected, found.high) == pytest.approx((middle - half, middle, middle + half))
    assert found.rehearsed == tuple(known.right.mean() for known in rehearsals)
    assert (found.held_out, found.apart) == (7, 1.0)


def test_clearer_labels_raise_it(rehearsals):
    rng = np.random.default_rng(2)
    assert (
        foretell(pool(rng, 200, 1.0).reading, rehearsals, 7).low
        > foretell(pool(rng, 200, 0.5).reading, rehearsals, 7).high
    )


def test_a_group_that_takes_all_of_a_strange_pool_leaves_no_forecast(rehearsals):
    """Also where a label of a person has settled its name."""
    L = 10
    asked = Reading(np.zeros(200, dtype=np.int64), np.full(200, 1.0), np.zeros(200, dtype=bool))
    sizes, given = np.bincount([0], minlength=L) * 200, np.bincount([0], minlength=L)
    names = Names(np.eye(L), sizes, given)
    assert names.crowded == pytest.approx((200 - LARGE * 200 / L) / 200)
    assert foretell(asked, rehearsals, 7, apart=50.0, names=names).useless
    even = names._replace(sizes=np.full(L, 20))
    assert even.crowded == 0
    assert foretell(asked, rehearsals, 7, names=even).low > 0.5


def test_another_kind_of_images_makes_it_wider(rehearsals):
    asked = pool(np.random.default_rng(1), 200, 0.9).reading
    usual, other = foretell(asked, rehearsals, 7), foretell(asked, rehearsals, 7, apart=50.0)
    assert MISS_OF_ANOTHER_KIND > USUAL_MISS
    assert other.high - other.low > 1.5 * (usual.high - usual.low)
    assert other.apart == 50


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), count=st.integers(2, 4), images=st.integers(1, 30))
def test_always_a_range_of_shares(seed, count, images):
    rng = np.random.default_rng(seed)
    found = foretell(pool(rng, images, 1).reading, [pool(rng, images, rng.random()) for _ in range(count)], 2)
    assert 0 <= found.low <= found.expected <= found.high <= 1


def test_labels_that_no_rehearsal_has_had():
    """In GZSL a rehearsal may take no image for a seen class; nothing is known of such labels."""
    rng = np.random.default_rng(0)
    only_seen = Reading(np.zeros(5, dtype=np.int64), rng.random(5), np.ones(5, dtype=bool))
    found = foretell(only_seen, [pool(rng, 20, 1), pool(rng, 20, 1)], 2)
    assert found.expected == 0.5
