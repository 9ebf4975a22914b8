"""MATLAB files: what is in them comes out, and what ends the process that reads them does not end ours."""

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from scipy.io import savemat
from scipy.sparse import csc_matrix

from pren.data.benchmarks import mat, mat_child
from pren.data.benchmarks.mat import mat_shapes, read_mat, texts

pytestmark = pytest.mark.slow

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


@pytest.mark.slow
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", [0, 8, 10, 11, 14, 15, 16, 19, 20, 200, 65535])
def test_elements_of_no_known_type_end_the_child_at_most(tmp_path, kind, compressed):
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.arange(3.0)})
    content = bytearray(path.read_bytes())
    assert struct.unpack("<II", content[DATA_TAG : DATA_TAG + 8]) == (9, 24)
    content[DATA_TAG : DATA_TAG + 4] = struct.pack("<I", kind)
    if compressed:
        packed = zlib.compress(bytes(content[128:]))
        content[128:] = struct.pack("<II", 15, len(packed)) + packed
    path.write_bytes(content)
    with refused("mat-unreadable x.mat"):
        read_mat(path, ["x"])
    with refused("mat-missing-key"):  # what is not wanted is not looked at
        read_mat(path, ["y"])


@pytest.mark.parametrize(
    "value",
    [
        np.ones(3) * 1j,
        {"a": 1},
        cells("a", cells("b")),
        cells("a", 3.0),
        csc_matrix(np.eye(2)),
    ],
    ids=["complex", "struct", "cells in cells", "numbers in cells", "sparse"],
)
def test_only_what_data_files_need_is_let_through(tmp_path, value):
    savemat(tmp_path / "x.mat", {"x": value, "y": np.ones(2)})
    with refused("mat-unreadable"):
        read_mat(tmp_path / "x.mat", ["x"])
    assert read_mat(tmp_path / "x.mat", ["y"])["y"].tolist() == [[1, 1]]


@pytest.mark.parametrize("cut", [127, 130, 140, 160, 180, 200])
def test_files_that_end_too_early(tmp_path, cut):
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.arange(30.0)})
    path.write_bytes(path.read_bytes()[:cut])
    with refused("mat-unreadable x.mat"):
        read_mat(path, ["x"])


@pytest.mark.parametrize("side", [2**15, 2**30])
def test_more_cells_than_bytes(tmp_path, side):
    path = tmp_path / "x.mat"
    savemat(path, {"x": cells("a", "b")})
    content = bytearray(path.read_bytes())
    content[128 + 8 + 16 + 8 : 128 + 8 + 16 + 16] = struct.pack("<ii", side, side)  # scipy would make room for them
    path.write_bytes(content)
    with refused("mat-unreadable x.mat"):
        read_mat(path, ["x"])


def test_a_variable_that_stands_twice(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.arange(3.0)})
    content = path.read_bytes()
    path.write_bytes(content + content[128:])
    with refused("mat-unreadable 2"):
        read_mat(path, ["x"])


def test_the_child_alone(tmp_path):
    content = {"x": np.arange(6.0).reshape(2, 3), "y": cells("a", "b"), "z": np.ones(1)}
    savemat(tmp_path / "x.mat", content)
    shapes, arrays = mat_child.read(str(tmp_path / "x.mat"), ["x", "y", "absent"])
    assert shapes == {"x": (2, 3), "y": (2, 1), "z": (1, 1)}
    assert mat_child.describe(arrays["x"]) == {"shape": (2, 3), "dtype": "<f8"}
    assert mat_child.describe(arrays["y"]) == {"shape": (2, 1), "texts": ["a", "b"]}
    assert list(arrays) == ["x", "y"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_answer_is_not_taken_for_the_next(tmp_path, monkeypatch, error):
    savemat(tmp_path / "x.mat", {"x": np.ones((300, 300))})
    savemat(tmp_path / "y.mat", {"y": np.arange(3.0)})

    def interrupt(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(mat, "_array", interrupt)
        with pytest.raises(error):
            read_mat(tmp_path / "x.mat", ["x"])
    assert read_mat(tmp_path / "y.mat", ["y"])["y"].tolist() == [[0, 1, 2]]


def test_the_child_ends_when_it_takes_too_long_or_has_nothing_to_do(tmp_path):
    savemat(tmp_path / "x.mat", {"x": np.ones(1)})
    read_mat(tmp_path / "x.mat", ["x"])
    child = mat._READER._child
    os.kill(child.pid, signal.SIGALRM)  # as its own alarm does
    child.wait()
    assert read_mat(tmp_path / "x.mat", ["x"])["x"] == 1
    with while_asked(signal.SIGPROF), refused("mat-unreadable"):
        read_mat(tmp_path / "x.mat", ["x"])


def test_a_child_that_ends_idle_before_the_question_comes_is_replaced(tmp_path):
    """On a busy machine, between looking whether it is there and asking it."""
    savemat(tmp_path / "x.mat", {"x": np.ones(1)})
    read_mat(tmp_path / "x.mat", ["x"])
    with while_asked(signal.SIGALRM):
        assert read_mat(tmp_path / "x.mat", ["x"])["x"] == 1


@contextmanager
def while_asked(number):
    """The child gets a question, and then a signal before it can answer."""
    pid = mat._READER._child.pid
    os.kill(pid, signal.SIGSTOP)
    timers = [threading.Timer(at, os.kill, (pid, what)) for at, what in ((0.2, number), (0.3, signal.SIGCONT))]
    for timer in timers:
        timer.start()
    yield
    for timer in timers:
        timer.join()


@pytest.mark.parametrize(("meanwhile", "code"), [("time.sleep(1)", 0), ("while True: pass", -signal.SIGPROF)])
def test_patience_is_counted_in_processor_time(tmp_path, meanwhile, code):
    """Waiting for other processes is not the file's fault; a file that keeps the processor busy is."""
    savemat(tmp_path / "x.mat", {"x": np.ones(1)})
    program = f"""
import time
from pren.data.benchmarks import mat_child
def read(path, names):
    {meanwhile}
    return {{}}, {{}}
mat_child.PATIENCE, mat_child.read = 0.3, read
mat_child.main()
"""
    request = json.dumps([str(tmp_path / "x.mat"), ["x"]]).encode()
    ended = subprocess.run([sys.executable, "-c", program, json.dumps(sys.path)], input=request, capture_output=True)
    assert ended.returncode == code


def test_a_fork_has_a_child_of_its_own(tmp_path):
    savemat(tmp_path / "x.mat", {"x": np.ones(1)})
    read_mat(tmp_path / "x.mat", ["x"])
    ours = mat._READER._child.pid
    forked = os.fork()
    if forked == 0:
        read_mat(tmp_path / "x.mat", ["x"])
        theirs = mat._READER._child.pid
        mat._READER._stop()
        os._exit(0 if theirs != ours else 1)
    assert os.waitpid(forked, 0)[1] == 0
    assert read_mat(tmp_path / "x.mat", ["x"])["x"] == 1
    assert mat._READER._child.pid == ours


@pytest.mark.slow
def test_no_child_outlives_its_parent(tmp_path):
    savemat(tmp_path / "x.mat", {"x": np.ones(1)})
    program = (
        "import os, signal, sys; from pathlib import Path; from pren.data.benchmarks import mat;"
        "mat.mat_shapes(Path(sys.argv[1])); print(mat._READER._child.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "x.mat"], stdout=subprocess.PIPE, check=False)
    assert done.returncode == -signal.SIGKILL
    state = Path("/proc") / done.stdout.decode().strip() / "stat"
    deadline = time.monotonic() + 60
    while state.exists() and state.read_text().split(") ")[1][0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_machine_that_is_too_busy_is_told(tmp_path, monkeypatch):
    savemat(tmp_path / "a.mat", {"x": np.ones(3)})

    def never(*_):
        raise mat._WasIdleError

    monkeypatch.setattr(mat._Reader, "_asked", never)
    with refused("mat-busy a.mat"):
        mat_shapes(tmp_path / "a.mat")
