"""Mutated NumPy files: problems to fit, and inputs to predict."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from campaigns.fuzz.command import SUCCESS, changes, pren, snapshot
from campaigns.fuzz.mutations import BYTE_EDITS, ByteEdit
from campaigns.fuzz.templates import PARAMS, Workshop, problem
from pren.data.arrays import IN_MEMORY

Array = NDArray[Any]
NOTHING = 128  # bytes of an array without a number in it
SMALL = [part for key, value in PARAMS.items() for part in ("--set", f"{key}={value}")]


def _put(array: Array, value: Any) -> Array:
    """One element replaced, in a type that can hold it."""
    result = array.astype(np.result_type(array.dtype, type(value))) if array.dtype.kind != "U" else array.copy()
    result.reshape(-1)[:1] = value
    return result


CHANGES: dict[str, Callable[[Array], Array]] = {
    "object": lambda a: a.astype(object),
    "structured": lambda a: np.zeros(a.shape, dtype=[("x", "f4"), ("y", "i8")]),
    "complex": lambda a: np.ones(a.shape, dtype=complex) * 1j,
    "bool": lambda a: np.arange(a.size).reshape(a.shape) % 2 == 0,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "fortran": np.asfortranarray,
    "half": lambda a: np.ones(a.shape, dtype=np.float16) if a.dtype.kind == "U" else a.astype(np.float16),
    "long double": lambda a: np.ones(a.shape, dtype=np.longdouble) * np.finfo(np.longdouble).max,
    "integers": lambda a: np.arange(a.size, dtype=np.int64).reshape(a.shape),
    "uint64": lambda a: np.full(a.shape, 2**64 - 1, dtype=np.uint64),
    "int8": lambda a: np.zeros(a.shape, dtype=np.int8),
    "datetime": lambda a: np.zeros(a.shape, dtype="datetime64[s]"),
    "not a time": lambda a: np.full(a.shape, "NaT", dtype="timedelta64[D]"),
    "bytes": lambda a: np.full(a.shape, b"a"),
    "void": lambda a: np.zeros(a.shape, dtype="V3"),
    "text": lambda a: np.full(a.shape, "a"),
    "no characters": lambda a: np.zeros(a.shape, dtype="U0"),
    "scalar": lambda a: a.reshape(-1)[0],
    "empty": lambda a: a[:0],
    "no columns": lambda a: a.reshape(*a.shape, 1)[..., :0],
    "one row": lambda a: a[:1],
    "fewer rows": lambda a: a[:-1],
    "more rows": lambda a: np.concatenate([a, a]),
    "fewer columns": lambda a: a[..., :1],
    "more axes": lambda a: a[..., None],
    "images": lambda a: np.zeros((len(a), 1, 8, 8), dtype=np.float32),
    "transposed": lambda a: a.T,
    "nan": lambda a: _put(a, np.nan),
    "inf": lambda a: _put(a, -np.inf),
    "1e300": lambda a: _put(a, 1e300),
    "all 1e300": lambda a: np.full(a.shape, 1e300),
    "all 3e38": lambda a: np.full(a.shape, 3e38),
    "all 1e-320": lambda a: np.full(a.shape, 1e-320),
    "1e-160": lambda a: np.full(a.shape, 1e-160),
    "1e25": lambda a: np.arange(a.size).reshape(a.shape) * 1e25,
    "negative": lambda a: _put(a, -1),
    "very negative": lambda a: _put(a, np.iinfo(np.int64).min),
    "zeros": lambda a: np.zeros(a.shape, dtype=a.dtype),
    "reversed": lambda a: a[::-1],
}


@dataclass(frozen=True)
class Change:
    """A change of one array.

    Attributes:
        key: Which; unknown names are added.
        what: One of `CHANGES`, "drop", or an array to put there.
    """

    key: str
    what: str | Array

    def apply(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """The arrays, changed."""
        if isinstance(self.what, np.ndarray):
            return {**arrays, self.key: self.what}
        if self.what == "drop":
            return {key: value for key, value in arrays.items() if key != self.key}
        old = arrays.get(self.key)
        return {**arrays, self.key: CHANGES[self.what](np.zeros(3) if old is None or old.ndim == 0 else old)}


@dataclass(frozen=True)
class ArrayFile:
    """A file with arrays.

    Attributes:
        use: "fit eszsl", "fit pren", "fit gzsl", "predict eszsl" or "predict finished" (the run to predict with).
        changes: What is done to the arrays; for "predict" the array is "inputs".
        form: How the file is written, see `_write`.
        name: What it is called.
        edits: What is done to its bytes.
        header: What the header of the first array is replaced by, "" for nothing.
        large: Whether its arrays count as large ones, which stay on disk.
    """

    use: str
    changes: tuple[Change, ...]
    form: str
    name: str
    edits: tuple[ByteEdit, ...]
    header: str
    large: bool


KEYS = ("features", "labels", "signatures", "pool", "class_names", "answers")
HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (300000000, 5), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (-1, 5), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (6, 5, 0), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (6,), }",
    "{'descr': '<U1000000000', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (6, 5), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (True, 5), }",
    "{'descr': 'nonsense', 'fortran_order': 3, 'shape': 6}",
    "__import__('os').abort()",
    "[" * 3000,
    "{" + "'a':" * 2000,
)
FORMS = ("npz", "compressed", "bzip2", "lzma", "npy", "extra member", "member twice", "folder", "bomb", "encrypted")
SPECIAL = ("a folder", "a pipe", "a dead link", "a link to itself", "/dev/zero", "nothing")
NAMES = ("data.npz",) * 5 + ("data.npy",) * 2 + ("DATA.NPZ", "data.txt", "data", "-data.npz", "é \x1b[31m.npz", ".npz")
_ARRAYS: SearchStrategy[Any] = nps.arrays(
    nps.scalar_dtypes() | nps.unicode_string_dtypes(endianness="<", max_len=4),
    nps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)
_NAMES: SearchStrategy[Any] = st.lists(st.text(max_size=4), min_size=5, max_size=5).map(np.array)


def _changes(keys: tuple[str, ...]) -> SearchStrategy[tuple[Change, ...]]:
    one = (
        st.builds(Change, st.sampled_from(keys), st.sampled_from(["drop", *CHANGES]) | _ARRAYS)
        | st.builds(Change, st.just("class_names"), _NAMES)
        | st.builds(Change, st.sampled_from(["answer", "", "x/y", "file", "\ud800", "../x"]), st.just("int8"))
    )
    return st.lists(one, max_size=2).map(tuple)


def _cases(uses: list[str], keys: tuple[str, ...]) -> SearchStrategy[ArrayFile]:
    return st.builds(
        ArrayFile,
        st.sampled_from(uses),
        _changes(keys),
        st.sampled_from(("npz",) * 10 + ("npy",) * 2 + FORMS + SPECIAL),
        st.sampled_from(NAMES),
        st.just(()) | st.just(()) | st.lists(BYTE_EDITS, min_size=1, max_size=2).map(tuple),
        st.sampled_from(("",) * 12 + HEADERS),
        st.booleans(),
    )


CASES: SearchStrategy[ArrayFile] = _cases(["fit eszsl", "fit pren", "fit gzsl"], KEYS) | _cases(
    ["predict eszsl", "predict finished"], ("inputs",)
)


def check(workshop: Workshop, case: ArrayFile) -> str:
    """Fit or predict."""
    place = workshop.fresh()
    verb, _, which = case.use.partition(" ")
    _write(place / case.name, case, problem() if verb == "fit" else {"inputs": problem()["pool"]})
    run = workshop.template(which) if verb == "predict" else place / "run"
    inputs = [path for path in (place / case.name, workshop.data) if path.exists() or path.is_symlink()]
    inputs += [run] if verb == "predict" else []
    before = snapshot(*inputs)
    with mock.patch("pren.data.arrays.IN_MEMORY", NOTHING if case.large else IN_MEMORY):
        if verb == "predict":
            result = pren("predict", str(run), "--out", "out.csv", "--json", "--", case.name)
        else:
            method = ["--method", "eszsl"] if which == "eszsl" else ["--method", "pren", *SMALL]
            setting = ["--setting", "gzsl" if which == "gzsl" else "zsl"]
            result = pren("fit", *method, *setting, "--out", "run", "--", case.name)
    changed = changes(before, snapshot(*inputs))
    assert not changed, f"input files have changed: {changed}"
    if verb == "fit" and result.outcome == SUCCESS:
        shown = pren("show", "run", "--json")
        assert shown.outcome == SUCCESS, f"a run that was just written cannot be shown: {shown.err}"
        pren("evaluate", "run")  # it may lack answers
    if verb == "predict":
        assert (place / "out.csv").exists() == (result.outcome == SUCCESS), "predictions are there, or should be"
    return result.outcome


def _write(path: Path, case: ArrayFile, arrays: dict[str, Array]) -> None:
    if case.form in SPECIAL:
        _write_special(path, case.form)
        return
    for change in case.changes:
        arrays = change.apply(arrays)
    members = {f"{key}.npy": _npy(value) for key, value in arrays.items()}
    if case.header:
        first = next(iter(members), "inputs.npy")
        members[first] = _with_header(members.get(first, b""), case.header)
    content = next(iter(members.values()), b"") if case.form == "npy" else _zip(members, case.form)
    for edit in case.edits:
        content = edit.apply(content)
    path.write_bytes(content)


def _write_special(path: Path, form: str) -> None:
    if form == "a folder":
        path.mkdir()
    elif form == "a pipe":
        os.mkfifo(path)
    elif form != "nothing":
        path.symlink_to({"a dead link": "nowhere", "a link to itself": path.name}.get(form, form))


def _npy(array: Array) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)  # what pren must refuse to read
    return file.getvalue()


def _with_header(content: bytes, header: str) -> bytes:
    """An array in format 1.0 with another header before the same numbers."""
    text = header.encode() + b" " * (-(len(header) + 11) % 64) + b"\n"
    numbers = content[10 + int.from_bytes(content[8:10], "little") :]
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + numbers


def _zip(members: dict[str, bytes], form: str) -> bytes:
    methods = {"compressed": zipfile.ZIP_DEFLATED, "bomb": zipfile.ZIP_DEFLATED}
    methods |= {"bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", methods.get(form, zipfile.ZIP_STORED)) as archive:
        for name, content in members.items():
            # A few megabytes behind a few kilobytes: enough to see that nothing unfolds twice.
            text = name.encode("utf-8", "replace").decode()
            archive.writestr(text, content + bytes(1 << 22) if form == "bomb" else content)
            if form == "member twice":
                _write_again(archive, text, content)
        if form == "extra member":
            archive.writestr("readme.txt", "not an array")
        if form == "folder":
            archive.writestr("features/", "")
    content = file.getvalue()
    if form == "encrypted":  # so say the flags in front of every member and in the directory at the end
        content = content.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01")
        content = content.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")
    return content


def _write_again(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """The same name once more, without the warning that zipfile gives."""
    archive.NameToInfo.pop(name)
    archive.writestr(name, content[:-1])
