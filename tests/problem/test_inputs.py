"""Where images and features come from: arrays of any kind, read a few at a time."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pren.problem import inputs as module
from pren.problem.inputs import (
    CHUNK,
    ArrayInputs,
    Inputs,
    JoinedInputs,
    SelectedInputs,
    as_inputs,
    chunks,
    joined,
    pieces,
    single,
    to_numpy,
)


def matrix(rows=5, columns=3, dtype=np.float32):
    return np.arange(rows * columns, dtype=dtype).reshape(rows, columns)


# --- arrays as inputs


@pytest.mark.parametrize("shape", [(5, 3), (5, 1, 2, 4), (0, 3)])
def test_features_and_images(shape):
    array = np.random.default_rng(0).random(shape, dtype=np.float32)
    inputs = ArrayInputs(array)
    assert isinstance(inputs, Inputs)
    assert len(inputs) == shape[0]
    assert inputs.sample_shape == shape[1:]
    assert np.array_equal(inputs[np.arange(len(inputs))].numpy(), array)


def test_rows_come_in_the_order_they_are_asked_for_and_as_often():
    inputs = ArrayInputs(matrix())
    assert inputs[np.array([3, 0, 3])].tolist() == [[9, 10, 11], [0, 1, 2], [9, 10, 11]]
    assert inputs[np.array([], dtype=np.int64)].shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.uint8, np.int64, ">f4", np.float32])
def test_every_kind_of_number_becomes_single_precision(dtype):
    batch = ArrayInputs(matrix(dtype=dtype))[np.array([1])]
    assert batch.dtype == torch.float32
    assert batch.tolist() == [[3, 4, 5]]


def test_what_was_read_is_a_copy():
    array = matrix()
    batch = ArrayInputs(array)[np.array([0])]
    batch += 1
    assert np.array_equal(array, matrix())


@pytest.mark.parametrize("shape", [(), (5,), (5, 3, 2), (5, 0), (5, 3, 0, 2), (1, 1, 1, 1, 1)])
def test_other_shapes_are_refused_by_name(shape):
    with refused("inputs-shape") as error:
        ArrayInputs(np.zeros(shape), "pool")
    assert str(shape) in str(error.value)


@pytest.mark.parametrize("array", [np.array([["a", "b"]]), np.array([[True, False]]), np.array([[1j, 2]])])
def test_other_contents_are_refused_by_name(array):
    with refused(f"inputs-kind pool {array.dtype}"):
        ArrayInputs(array, "pool")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])  # 1e39 is more than single precision holds
@pytest.mark.parametrize("row", [0, 3, CHUNK - 1, CHUNK, CHUNK + 5])
def test_the_first_bad_row_is_named(bad, row):
    array = np.zeros((CHUNK + 10, 2))
    array[[row, CHUNK + 7], 1] = bad
    with refused(f"not-finite pool {row}"):
        ArrayInputs(array, "pool")


def test_a_bad_pixel_is_found_in_its_image():
    images = np.zeros((4, 1, 3, 3), dtype=np.float32)
    images[2, 0, 1, 2] = np.nan
    with refused("not-finite 2"):
        ArrayInputs(images)


# --- memory-mapped files


@pytest.fixture
def mapped(tmp_path):
    path = tmp_path / "array.npy"
    np.save(path, matrix(40))
    return np.load(path, mmap_mode="r")


def test_a_memory_mapped_file_reads_as_the_array(mapped):
    inputs, in_memory = ArrayInputs(mapped), ArrayInputs(matrix(40))
    assert torch.equal(inputs[np.array([39, 2])], in_memory[np.array([39, 2])])
    assert inputs.digest() == in_memory.digest()
    inputs[np.array([0])].zero_()  # a copy: the file is read-only


def test_a_file_is_never_read_as_a_whole(mapped, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 7)
    read = []

    class Watched(np.memmap):
        def __getitem__(self, index):
            part = super().__getitem__(index)
            read.append(len(part))
            return np.asarray(part)

    inputs = ArrayInputs(mapped.view(Watched))
    inputs.digest()
    inputs[np.array([1, 2])]
    assert max(read) == 7
    assert sum(read) == 40 + 40 + 2


# --- hashes


def test_the_digest_covers_content_shape_and_type():
    other_value = matrix()
    other_value[4, 2] += 1
    arrays = [matrix(), other_value, matrix()[::-1], matrix(3, 5), matrix().reshape(5, 1, 1, 3), matrix(4)]
    arrays += [matrix(dtype=np.float64), matrix().view(np.int32)]  # the latter with the same bytes
    assert len({ArrayInputs(array).digest() for array in arrays}) == len(arrays)


@pytest.mark.parametrize("chunk", [1, 2, 1000])
def test_the_digest_does_not_depend_on_how_the_array_is_laid_out_or_read(monkeypatch, chunk):
    digest = ArrayInputs(matrix()).digest()
    monkeypatch.setattr(module, "CHUNK", chunk)
    for same in (matrix().copy(order="F"), np.repeat(matrix(), 2, axis=1)[:, ::2]):
        assert ArrayInputs(same).digest() == digest


# --- whatever a user has


@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist, torch.from_numpy])
def test_numpy_torch_and_lists_are_inputs(convert):
    inputs = as_inputs(convert(matrix()))
    assert inputs[np.arange(5)].tolist() == matrix().tolist()


def test_a_tensor_that_has_gradients_is_read_without():
    batch = as_inputs(torch.ones(2, 3, requires_grad=True))[np.array([0])]
    assert not batch.requires_grad


def test_a_tensor_in_brain_floating_point_is_read():
    assert as_inputs(torch.ones(2, 3, dtype=torch.bfloat16))[np.array([0])].tolist() == [[1, 1, 1]]


def test_inputs_stay_what_they_are():
    inputs = ArrayInputs(matrix())
    assert as_inputs(inputs) is inputs


def test_ragged_lists_are_refused_by_name():
    with refused("inputs-kind features"):
        to_numpy([[1, 2], [3]], "features")


@pytest.mark.parametrize("value", [None, [None, 1], [object()]])
def test_python_objects_are_refused_by_name(value):
    with refused("inputs-kind features"):
        to_numpy(value, "features")


def test_errors_name_the_array():
    with refused("not-finite pool 1"):
        as_inputs([[0.0], [float("nan")]], "pool")


# --- walking through


@given(rows=st.integers(0, 20), size=st.integers(1, 25))
def test_chunks_walk_through_everything_in_order(rows, size):
    parts = list(chunks(ArrayInputs(matrix(rows)), size))
    assert torch.cat(parts).tolist() == matrix(rows).tolist()
    assert all(len(part) == size for part in parts[:-1])
    assert len(parts) == max(1, -(-rows // size))


def test_chunks_of_nothing_are_one_empty_chunk():
    (chunk,) = chunks(ArrayInputs(np.empty((0, 3))), 4)
    assert chunk.shape == (0, 3)


# --- some of other inputs


@pytest.mark.parametrize("shape", [(7, 3), (7, 1, 2, 4)])
def test_selected_inputs_are_as_a_copy_of_them_would_be(shape):
    array = np.random.default_rng(0).random(shape, dtype=np.float32)
    places = np.array([5, 0, 5, 3])
    selected, copy = SelectedInputs(ArrayInputs(array), places), ArrayInputs(array[places])
    assert isinstance(selected, Inputs)
    assert (len(selected), selected.sample_shape) == (len(copy), copy.sample_shape)
    for indices in ([0, 1, 2, 3], [3, 3, 0], []):
        which = np.array(indices, dtype=np.int64)
        assert torch.equal(selected[which], copy[which])
    assert selected.digest() == copy.digest()


def test_the_digest_of_selected_inputs_tells_their_order_and_number():
    inputs = ArrayInputs(matrix())
    digests = {SelectedInputs(inputs, np.array(places)).digest() for places in ([0, 1], [1, 0], [0], [0, 1, 2])}
    assert len(digests) == 4


def test_the_digest_of_many_selected_inputs_is_taken_in_parts():
    array = np.random.default_rng(0).random((3 * CHUNK, 2), dtype=np.float32)
    places = np.random.default_rng(1).permutation(2 * CHUNK + 5)
    assert SelectedInputs(ArrayInputs(array), places).digest() == ArrayInputs(array[places]).digest()


def test_joined_inputs_stand_one_behind_the_other():
    array = np.arange(12, dtype=np.float16).reshape(6, 2)
    both = JoinedInputs(ArrayInputs(array[:4]), ArrayInputs(array[4:].astype(np.float32)))
    assert (len(both), both.sample_shape) == (6, (2,))
    for places in ([0, 5, 2, 5], [1], [4], []):
        chosen = np.array(places, dtype=np.int64)
        assert np.array_equal(both[chosen].numpy(), array[chosen])
        assert np.array_equal(both.select(chosen)[np.arange(len(places))].numpy(), array[chosen])


def test_the_digest_of_joined_inputs_tells_both():
    a, b = ArrayInputs(np.zeros((2, 2))), ArrayInputs(np.ones((2, 2)))
    digests = {JoinedInputs(*parts).digest() for parts in ((a, b), (b, a), (a, a))}
    assert len(digests) == 3
    assert JoinedInputs(a, b).digest() in digests


@pytest.mark.parametrize("rows", [0, 1, 4, 5, 8, 9])
def test_pieces_are_all_inputs_in_order(rows):
    array = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    found = list(pieces(ArrayInputs(array), 4))
    assert [len(piece) for piece in found] == [min(4, rows - start) for start in range(0, max(rows, 1), 4)]
    assert np.array_equal(np.concatenate([piece[np.arange(len(piece))] for piece in found]), array)


def test_parts_are_joined_as_they_come():
    parts = [np.arange(6.0).reshape(3, 2), np.zeros((0, 2)), np.ones((1, 2))]
    assert np.array_equal(joined(4, iter(parts)), np.concatenate(parts))
    assert joined(0, [np.zeros((0, 3), np.float32)]).shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.float16, ">f2", np.float32, np.int64])
def test_single_precision(dtype):
    array = np.array([[0, 1.5, -2], [3, 60000, 1e-7]]).astype(dtype)  # the last is below what half precision has
    assert single(array).dtype == torch.float32
    assert single(array).tolist() == array.astype(np.float32).tolist()


class Negatives(Inputs):
    """Photographs of a kind: what they are prepared with is added, and half of them are kept."""

    def __init__(self, array, more=0.0):
        self.array, self.more = array, more

    sample_shape = (3,)
    photographs = True

    def __len__(self):
        return len(self.array)

    def __getitem__(self, indices):
        return torch.from_numpy(self.array[indices] + np.float32(self.more))

    def digest(self):
        return b""

    def prepared(self, preprocessing):
        return Negatives(self.array, preprocessing)


def test_arrays_need_no_backbone():
    inputs = ArrayInputs(matrix())
    assert not inputs.photographs
    assert inputs.prepared(object()) is inputs


@pytest.mark.parametrize("places", [[2, 0], [1, 1], []])
def test_select(places):
    inputs, places = ArrayInputs(matrix()), np.array(places, dtype=np.int64)
    chosen = inputs.select(places)
    assert len(chosen) == len(places)
    assert chosen[np.arange(len(places))].equal(inputs[places])


def test_what_is_selected_stays_what_it_is():
    array = matrix(5).astype(np.float32)
    chosen = Negatives(array).select(np.array([4, 2, 0])).select(np.array([2, 1]))
    assert chosen.photographs
    assert chosen[np.arange(2)].numpy().tolist() == array[[0, 2]].tolist()
    assert chosen.prepared(1.0)[np.arange(2)].numpy().tolist() == (array[[0, 2]] + 1).tolist()
    assert not ArrayInputs(array).select(np.array([1])).photographs
