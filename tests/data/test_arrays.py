"""The user's own NumPy files: what is right is read, what is wrong is explained, and nothing runs code."""

import os
import pickle
import warnings
import zipfile
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from refusals import refused

from pren.data.arrays import load_arrays, read_inputs
from pren.problem import UNKNOWN

NAMES = np.array(["ape", "bee", "cat", "dogfish"])


HEADER = 128  # bytes of an array that holds nothing


@pytest.fixture(params=[None, HEADER], ids=["in memory", "on disk"], autouse=True)
def everything_twice(request, monkeypatch):
    """Small files are read, large ones are mapped: all that holds of one holds of the other."""
    if request.param is not None:
        monkeypatch.setattr("pren.data.arrays.IN_MEMORY", request.param)


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {
        "features": rng.random((6, 5), dtype=np.float32),
        "labels": np.array([0, 0, 1, 1, 2, 2]),
        "signatures": np.eye(4),
        "pool": rng.random((3, 5), dtype=np.float32),
    }


@pytest.fixture
def save(tmp_path):
    def write(**arrays):
        path = tmp_path / "data.npz"
        np.savez(path, **arrays)
        return path

    return write


class Bomb:
    """Unpickling it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_reads_a_problem_in_the_order_of_the_file(arrays, save):
    path = save(**arrays)
    problem, answers = load_arrays(path)
    assert answers is None
    assert np.array_equal(problem.train[np.arange(6)].numpy(), arrays["features"])
    assert np.array_equal(problem.pool[np.arange(3)].numpy(), arrays["pool"])
    assert problem.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert problem.classes.seen.tolist() == [True, True, True, False]
    assert problem.setting == "zsl"
    assert problem.source["file"] == str(path)


class TestOnDisk:
    @pytest.fixture(autouse=True)
    def everything_large(self, monkeypatch):
        monkeypatch.setattr("pren.data.arrays.IN_MEMORY", HEADER)

    @pytest.fixture
    def sizes(self, monkeypatch):
        """How many bytes zipfile was asked for, read by read: all at once for an array in memory."""
        asked, read = [], zipfile.ZipExtFile.read

        def watched(self, n=-1):
            asked.append(n)
            return read(self, n)

        monkeypatch.setattr(zipfile.ZipExtFile, "read", watched)
        return asked

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8, ">f2"])
    def test_large_arrays_are_mapped(self, arrays, save, order, dtype):
        arrays |= {key: np.array(100 * arrays[key], dtype, order=order) for key in ("features", "pool")}
        path = save(**arrays)
        problem, _ = load_arrays(path)
        for inputs, key in ((problem.train, "features"), (problem.pool, "pool")):
            assert isinstance(inputs._array.base, np.memmap)
            assert inputs._array.dtype == np.dtype(dtype)
            places = np.arange(len(inputs))[::-1]
            assert np.array_equal(inputs[places].numpy(), arrays[key][places].astype(np.float32))
        assert isinstance(read_inputs(save(inputs=arrays["pool"]))._array.base, np.memmap)

    def test_the_problem_is_the_same(self, arrays, save, monkeypatch):
        path = save(**arrays, class_names=NAMES, answers=np.array([3, -1, 3]))
        mapped, answers = load_arrays(path)
        monkeypatch.setattr("pren.data.arrays.IN_MEMORY", 1 << 20)
        read, known = load_arrays(path)
        assert not isinstance(read.pool._array.base, np.memmap)
        assert mapped.fingerprint() == read.fingerprint()
        assert answers.labels.tolist() == known.labels.tolist()

    def test_compressed_and_small_arrays_are_read(self, arrays, tmp_path, save, monkeypatch):
        np.savez_compressed(tmp_path / "packed.npz", **arrays)
        packed, _ = load_arrays(tmp_path / "packed.npz")
        assert not isinstance(packed.pool._array.base, np.memmap)
        monkeypatch.setattr("pren.data.arrays.IN_MEMORY", HEADER + arrays["features"].nbytes)
        problem, _ = load_arrays(save(**arrays))
        assert not isinstance(problem.train._array.base, np.memmap)

    def test_a_large_array_is_never_read_as_a_whole(self, save, sizes, monkeypatch):
        monkeypatch.setattr("pren.data.arrays.BLOCK", 1000)
        read_inputs(save(inputs=np.ones((100, 100), np.float32)))
        assert 0 < max(sizes) <= 1000
        assert min(sizes) > 0

    def test_one_bit_is_noticed(self, arrays, save):
        path = save(**arrays)
        content = bytearray(path.read_bytes())
        content[content.index(arrays["pool"].tobytes()) + 3] ^= 1
        path.write_bytes(content)
        with refused("array-unreadable"):
            load_arrays(path)

    @pytest.mark.parametrize("shape", [(3, 4), (3, 6), (1 << 40, 5), (-3, 5)])
    def test_a_shape_that_is_not_the_contents(self, arrays, tmp_path, shape):
        facts = {"descr": "<f4", "fortran_order": False, "shape": shape}
        with zipfile.ZipFile(tmp_path / "odd.npz", "w") as file, file.open("inputs.npy", "w") as part:
            np.lib.format.write_array_header_1_0(part, facts)
            part.write(arrays["pool"].tobytes())
        with refused("array-unreadable"):
            read_inputs(tmp_path / "odd.npz")

    @pytest.mark.parametrize("dtype", ["O", [("x", "f4"), ("y", "O")]])
    def test_no_objects(self, tmp_path, dtype):
        facts = {"descr": dtype, "fortran_order": False, "shape": (100,)}
        with zipfile.ZipFile(tmp_path / "odd.npz", "w") as file, file.open("inputs.npy", "w") as part:
            np.lib.format.write_array_header_1_0(part, facts)
            part.write(bytes(100 * np.dtype(dtype).itemsize))
        with refused("array-unreadable"):
            read_inputs(tmp_path / "odd.npz")

    def test_a_part_that_says_it_is_elsewhere(self, save):
        path = save(inputs=np.ones((10, 10), np.float32))
        content = bytearray(path.read_bytes())
        entry = content.rindex(b"PK\x01\x02")
        content[entry + 42 : entry + 46] = (1 << 30).to_bytes(4, "little")
        path.write_bytes(content)
        with refused("array-unreadable"):
            read_inputs(path)


def test_takes_class_names_images_and_gzsl(arrays, save):
    arrays |= {
        "features": arrays["features"].reshape(6, 1, 1, 5),
        "pool": arrays["pool"].reshape(3, 1, 1, 5),
        "labels": NAMES[arrays["labels"]],
        "class_names": NAMES,
        "answers": np.array(["dogfish", "", "ape"]),
    }
    problem, answers = load_arrays(str(save(**arrays)), setting="gzsl", backbone="small-cnn")
    assert problem.classes.names == tuple(NAMES)
    assert problem.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert problem.train.sample_shape == (1, 1, 5)
    assert (problem.setting, problem.backbone) == ("gzsl", "small-cnn")
    assert answers is not None
    assert answers.labels.tolist() == [3, UNKNOWN, 0]


def test_names_that_are_shorter_than_the_first_class_are_not_cut(arrays, save):
    # The answers' array holds 3 letters, the name that stands in for unknown ones has 7.
    arrays |= {"class_names": NAMES[::-1], "answers": np.array(["ape", "", "cat"])}
    _, answers = load_arrays(save(**arrays))
    assert answers is not None
    assert answers.labels.tolist() == [3, UNKNOWN, 1]


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_answers_as_row_numbers(arrays, save, dtype):
    _, answers = load_arrays(save(**arrays, answers=np.array([3, -1, 3], dtype=dtype)))
    assert answers is not None
    assert answers.labels.dtype == np.int64
    assert answers.labels.tolist() == [3, UNKNOWN, 3]


@pytest.mark.parametrize("dtype", ["f4", "V3", [("x", "f4"), ("y", "i8")], "M8[s]", "S1"])
@pytest.mark.parametrize("key", ["answers", "given"])
def test_labels_of_the_pool_that_are_neither_numbers_nor_names(arrays, save, key, dtype):
    with refused("array-kind"):
        load_arrays(save(**arrays, **{key: np.zeros(3, dtype=dtype)}))


def test_answers_have_no_part_in_the_problem(arrays, save):
    without, _ = load_arrays(save(**arrays))
    for labels in ([3, 3, 3], [-1, -1, -1], [0, 1, 2]):
        problem, _ = load_arrays(save(**arrays, answers=np.array(labels)))
        assert problem.fingerprint() == without.fingerprint()
        assert problem.source == without.source
        assert np.array_equal(problem.classes.seen, without.classes.seen)


@pytest.mark.parametrize("as_names", [False, True])
def test_labels_that_a_person_gives_are_part_of_the_problem_and_no_answers(arrays, save, as_names):
    given, answers = np.array([3, -1, -1]), np.array([3, -1, 3])
    if as_names:
        arrays["class_names"] = NAMES
        given, answers = (np.append(NAMES, "")[rows] for rows in (given, answers))
    problem, known = load_arrays(save(**arrays, given=given, answers=answers))
    assert problem.given.tolist() == [3, UNKNOWN, UNKNOWN]
    assert known.labels.tolist() == [UNKNOWN, UNKNOWN, 3]
    nobody = given[[1, 1, 1]]
    assert load_arrays(save(**arrays, given=nobody))[0].given is None


@pytest.mark.parametrize("known", [None, [3, -1, 0]])
def test_labelled_images_can_be_held_out(arrays, save, known):
    given = np.array([-1, 3, -1])
    answers = {} if known is None else {"answers": np.array(known)}
    problem, found = load_arrays(save(**arrays, **answers, given=given), setting="gzsl", hold_out=0.5)
    assert problem.labels.tolist() == [0, 1, 2]
    assert found.labels[:3].tolist() == ([UNKNOWN] * 3 if known is None else known)
    assert sorted(found.labels[3:]) == [0, 1, 2]
    assert problem.given.tolist() == [*given, UNKNOWN, UNKNOWN, UNKNOWN]
    pool, train = problem.pool[np.arange(6)].numpy(), problem.train[np.arange(3)].numpy()
    assert np.array_equal(pool[:3], arrays["pool"]), "whose places stay"
    for row, label in zip([*pool[3:], *train], [*found.labels[3:], *problem.labels], strict=True):
        (place,) = np.flatnonzero((arrays["features"] == row).all(axis=1))
        assert arrays["labels"][place] == label
    again, _ = load_arrays(save(**arrays, **answers, given=given), setting="gzsl", hold_out=0.5)
    assert again.fingerprint() == problem.fingerprint()


def test_in_zsl_nothing_is_held_out(arrays, save):
    with refused("hold-out"):
        load_arrays(save(**arrays), hold_out=0.2)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"answers": np.array([3, 3])}, "array-shape 2 3"),
        ({"answers": np.array([[3], [3], [3]])}, "array-shape 3 1"),
        ({"answers": np.array(3)}, "array-shape"),
        ({"answers": np.array([-1, 3, 4])}, "label-unknown 4 2"),
        ({"answers": np.array([3, -2, 3])}, "label-unknown 2 1"),
        ({"answers": np.array([3.0, 3.0, 3.0])}, "array-kind"),
        ({"answers": np.array([True, True, True])}, "array-kind"),
        ({"class_names": NAMES, "answers": np.array(["", "cow", ""])}, "label-unknown cow 1"),
        ({"given": np.array([3, 3])}, "array-shape 2 3"),
        ({"given": np.array([-1, 3, 4])}, "label-unknown 4 2"),
        ({"given": np.array([-1, 0, 3])}, "given-unknown"),
        ({"feature": np.eye(2)}, "array-unknown feature"),
        ({"zzz": np.eye(2)}, "array-unknown zzz class_names"),
        ({"signatures": np.array(1.0)}, "signatures-kind"),
        ({"signatures": np.array([["a"], ["b"]])}, "signatures-kind"),
        ({"class_names": np.arange(4)}, "class-names class_names"),
        ({"class_names": NAMES[:3]}, "class-count 3 4"),
        ({"labels": NAMES[[0, 0, 1, 1, 2, 2]]}, "class-names class_names"),
        ({"labels": np.array([0, 0, 1, 1, 2, 9])}, "label-unknown 9 5"),
        ({"features": np.full((6, 5), np.nan)}, "not-finite 0"),
        ({"features": np.array(["a"])}, "inputs-shape"),
        ({"pool": np.zeros((3, 4))}, "inputs-shape"),
    ],
)
def test_arrays_that_do_not_fit(arrays, save, change, refusal):
    path = save(**arrays | change)
    with refused(refusal) as caught:
        load_arrays(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("missing", ["features", "labels", "signatures", "pool"])
def test_missing_keys_are_named(arrays, save, missing):
    del arrays[missing]
    with refused("array-missing"):
        load_arrays(save(**arrays))


@pytest.mark.parametrize("read", [load_arrays, read_inputs])
class TestFilesThatCannotBeRead:
    def test_missing(self, read, tmp_path):
        with refused("file-missing"):
            read(tmp_path / "data.npz")

    def test_folder(self, read, tmp_path):
        (tmp_path / "data.npz").mkdir()
        with refused("array-unreadable"):
            read(tmp_path / "data.npz")

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("suffix", [".npz", ".npy"])
    def test_pipe(self, read, suffix, tmp_path):
        path = tmp_path / f"data{suffix}"
        os.mkfifo(path)
        with refused("not-a-file"):
            read(path)

    @pytest.mark.parametrize("content", [b"", b"class,a,b\ncat,1,2\n", b"\x93NUMPY", b"PK\x03\x04", pickle.dumps([1])])
    def test_no_npz(self, read, content, tmp_path):
        path = tmp_path / "data.npz"
        path.write_bytes(content)
        with refused("array-unreadable") as caught:
            read(path)
        assert "allow_pickle" not in str(caught.value)  # no advice to do the dangerous thing

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
    def test_truncated(self, read, share, arrays, save):
        path = save(**arrays)
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
        with refused("array-unreadable"):
            read(path)

    def test_damaged_inside(self, read, arrays, save):
        path = save(**arrays)
        content = bytearray(path.read_bytes())
        place = content.find(arrays["features"].tobytes())
        content[place] ^= 0xFF
        path.write_bytes(content)
        with refused("array-unreadable"):
            read(path)

    def test_single_array_is_no_npz(self, read, tmp_path):
        path = tmp_path / "data.npz"
        with path.open("wb") as file:
            np.save(file, np.eye(3))
        with refused("array-format"):
            read(path)

    def test_objects_are_refused_and_run_no_code(self, read, arrays, tmp_path):
        trace = tmp_path / "trace"
        hostile = np.array([Bomb(trace)] * 6, dtype=object)
        path = tmp_path / "data.npz"
        np.savez(path, **arrays | {"features": hostile})
        with refused("array-unreadable"):
            read(path)
        assert not trace.exists()
        with np.load(path, allow_pickle=True) as file:  # the bomb is a real one
            _ = file["features"]
        assert trace.exists()

    def test_array_larger_than_memory(self, read, arrays, save):
        path = save(**arrays)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        header = members["features.npy"]
        members["features.npy"] = header.replace(b"(6, 5), }" + 10 * b" ", b"(6, 5" + 10 * b"0" + b"), }")
        assert members["features.npy"] != header
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        with refused("array-unreadable"):
            read(path)

    def test_member_that_is_no_array(self, read, tmp_path):
        path = tmp_path / "data.npz"
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("features", "labels", "signatures", "pool"):
                archive.writestr(name, "no array")
        with refused("array-format"):
            read(path)


class TestReadInputs:
    def test_npy_is_memory_mapped(self, tmp_path):
        features = np.random.default_rng(0).random((7, 4))
        np.save(tmp_path / "x.npy", features)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a read-only memory map must not make torch complain
            inputs = read_inputs(tmp_path / "x.npy")
            rows = inputs[np.array([6, 1])]
        assert rows.numpy() == pytest.approx(features[[6, 1]].astype(np.float32))
        assert isinstance(inputs._array, np.memmap)

    @pytest.mark.parametrize("keys", [["anything"], ["features", "labels"], ["inputs", "other"]])
    def test_npz(self, save, keys):
        first, *others = keys
        inputs = read_inputs(str(save(**{first: np.eye(3), **dict.fromkeys(others, np.zeros(1))})))
        assert inputs[np.arange(3)].numpy().tolist() == np.eye(3).tolist()

    @pytest.mark.parametrize("keys", [["a", "b"], ["features", "inputs"], []])
    def test_npz_that_is_not_clear(self, save, keys):
        with refused("array-choice"):
            read_inputs(save(**dict.fromkeys(keys, np.eye(3))))

    @pytest.mark.parametrize(
        ("array", "code"),
        [(np.zeros(3), "inputs-shape"), (np.full((2, 2), np.inf), "not-finite"), (np.array([["a"]]), "inputs-kind")],
    )
    def test_wrong_content_names_the_file(self, array, code, tmp_path):
        np.save(tmp_path / "x.npy", array)
        with refused(f"{code} x.npy"):
            read_inputs(tmp_path / "x.npy")

    def test_truncated_npy(self, tmp_path):
        path = tmp_path / "x.npy"
        np.save(path, np.zeros((100, 4)))
        path.write_bytes(path.read_bytes()[:1000])
        with refused("array-unreadable"):
            read_inputs(path)

    def test_hostile_npy_runs_no_code(self, tmp_path):
        np.save(tmp_path / "x.npy", np.array([Bomb(tmp_path / "trace")], dtype=object), allow_pickle=True)
        with refused("array-unreadable"):
            read_inputs(tmp_path / "x.npy")
        assert not (tmp_path / "trace").exists()

    def test_npz_named_npy(self, save):
        path = save(a=np.eye(2))
        with refused("array-unreadable"):
            read_inputs(path.rename(path.with_suffix(".npy")))

    def test_other_files(self, tmp_path):
        (tmp_path / "x.csv").write_text("1,2")
        with refused("array-format"):
            read_inputs(tmp_path / "x.csv")


@pytest.mark.parametrize("read", [load_arrays, read_inputs])
def test_a_file_that_inflates_to_gigabytes_is_not_read(tmp_path, monkeypatch, read):
    facts, path = {"descr": "<f8", "fortran_order": False, "shape": (40 << 17, 8)}, tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb, bomb.open("features.npy", "w") as part:
        np.lib.format.write_array_header_1_0(part, facts)
        for _ in range(320):
            part.write(bytes(1 << 20))
    monkeypatch.setattr("pren.data.arrays._read", Mock(side_effect=AssertionError("it was read")))
    with refused("array-compressed"):
        read(path)
