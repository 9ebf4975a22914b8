"""MATLAB files: what is in them comes out, and what could end the process does not reach scipy."""

import struct
import zlib

import numpy as np
import pytest
from scipy.io import savemat

from pren.data.mat import mat_shapes, read_mat, texts
from pren.errors import PrenError

DATA_TAG = 128 + 8 + 16 + 16 + 8  # of the only variable "x": after header, tag, flags, sizes and name


def cells(*values):
    result = np.empty((len(values), 1), dtype=object)
    result[:, 0] = values
    return result


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("version", ["4", "5"])
def test_numbers_and_text_come_out(tmp_path, compressed, version):
    rng = np.random.default_rng(0)
    content = {"a": rng.random((300, 400)), "b": np.arange(3.0), "c": np.array(["one", "three"])}
    if version == "5":
        content |= {f"of {t}": np.arange(5, dtype=t) for t in ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "i8")}
        content |= {
            "cells": cells(*(f"ä{number}" * (number % 7) or "-" for number in range(5000))),
            "none": np.ones((0, 3)),
        }
    savemat(tmp_path / "x.mat", content, do_compression=compressed and version == "5", format=version)
    read = read_mat(tmp_path / "x.mat", list(content), ["absent"])
    assert list(read) == list(content)
    np.testing.assert_array_equal(read["a"], content["a"])
    assert texts(read["c"], "c") == ["one", "three"]
    if version == "5":
        assert texts(read["cells"], "cells") == content["cells"].ravel().tolist()
        assert read["of i8"].tolist() == [[0, 1, 2, 3, 4]]
    assert mat_shapes(tmp_path / "x.mat")["a"] == (300, 400)


def test_files_of_the_other_byte_order(tmp_path):
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    body = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, 1, 1)
    body += struct.pack(">HH4s", 1, 1, b"x") + struct.pack(">IId", 9, 8, 2.5)
    (tmp_path / "x.mat").write_bytes(header + struct.pack(">II", 14, len(body)) + body)
    assert read_mat(tmp_path / "x.mat", ["x"])["x"].tolist() == [[2.5]]


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", [0, 8, 10, 11, 14, 15, 16, 19, 20, 200, 65535])
def test_elements_of_no_known_type_do_not_reach_scipy(tmp_path, kind, compressed):
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.arange(3.0)})
    content = bytearray(path.read_bytes())
    assert struct.unpack("<II", content[DATA_TAG : DATA_TAG + 8]) == (9, 24)
    content[DATA_TAG : DATA_TAG + 4] = struct.pack("<I", kind)
    if compressed:
        packed = zlib.compress(bytes(content[128:]))
        content[128:] = struct.pack("<II", 15, len(packed)) + packed
    path.write_bytes(content)
    with pytest.raises(PrenError, match=r"x\.mat cannot be read as a MATLAB file \(x is damaged"):
        read_mat(path, ["x"])
    with pytest.raises(PrenError, match="lacks y"):  # what is not wanted is not looked at
        read_mat(path, ["y"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(3) * 1j, "x holds complex numbers"),
        ({"a": 1}, "x is neither an ordinary array of numbers nor text"),
        (cells("a", cells("b")), "a cell is neither"),
    ],
)
def test_only_what_data_files_need_is_let_through(tmp_path, value, message):
    savemat(tmp_path / "x.mat", {"x": value, "y": np.ones(2)})
    with pytest.raises(PrenError, match=message):
        read_mat(tmp_path / "x.mat", ["x"])
    assert read_mat(tmp_path / "x.mat", ["y"])["y"].tolist() == [[1, 1]]


@pytest.mark.parametrize("cut", [127, 130, 140, 160, 180, 200])
def test_files_that_end_too_early(tmp_path, cut):
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.arange(30.0)})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(PrenError, match=r"x\.mat"):
        read_mat(path, ["x"])


def test_more_cells_than_bytes(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"x": cells("a", "b")})
    content = bytearray(path.read_bytes())
    content[128 + 8 + 16 + 8 : 128 + 8 + 16 + 16] = struct.pack("<ii", 2**30, 2**30)  # scipy would make room for them
    path.write_bytes(content)
    with pytest.raises(PrenError, match="ends too early"):
        read_mat(path, ["x"])


def test_a_variable_that_stands_twice(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.arange(3.0)})
    content = path.read_bytes()
    path.write_bytes(content + content[128:])
    with pytest.raises(PrenError, match="x stands twice"):
        read_mat(path, ["x"])
