"""Streams of random numbers: by seed, name and index, and by nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.foundation.seeds import stream

names = st.sampled_from(["subsets", "projection", "weights", "batches", "backbone"])
keys = st.tuples(st.integers(0, 2**64), names, st.integers(0, 1000))


def numbers(seed, name, *index):
    return stream(seed, name, *index).integers(2**63, size=4).tolist()


@given(keys)
def test_the_same_key_gives_the_same_numbers(key):
    assert numbers(*key) == numbers(*key)


@given(keys, keys)
def test_different_keys_give_different_numbers(key, other):
    assert (numbers(*key) == numbers(*other)) == (key == other)


def test_seed_name_and_index_all_count():
    drawn = [numbers(0, "a", 1), numbers(1, "a", 1), numbers(0, "b", 1), numbers(0, "a", 2), numbers(0, "a", 1, 1)]
    assert len({tuple(each) for each in drawn}) == len(drawn)


def test_drawing_from_one_stream_does_not_move_another():
    first = stream(0, "weights")
    expected = numbers(0, "batches", 3)
    first.random(1000)
    assert numbers(0, "batches", 3) == expected


def test_the_global_generator_is_left_alone():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    stream(0, "weights").random(10)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_streams_stay_the_same_from_one_process_and_version_to_the_next():
    # A run that was interrupted goes on with these. NumPy promises them for its bit generators.
    assert stream(0, "batches", 7).bit_generator.random_raw() == 10985318662807370421
    assert stream(2**40 + 1, "subsets").bit_generator.random_raw() == 12120808372423070862


@pytest.mark.parametrize("seed", [np.int64(5), 5])
def test_seeds_may_be_numpys(seed):
    assert numbers(seed, "a", 1) == numbers(5, "a", np.int64(1))
