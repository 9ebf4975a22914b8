"""The user's own arrays, from NumPy files, read without running code (``allow_pickle=False``)."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from pren.data.benchmarks.partition import shuffled
from pren.data.folds import held_out
from pren.foundation.errors import PrenError, suggest
from pren.problem import UNKNOWN, Answers, Problem, Setting, label_indices
from pren.problem.inputs import ArrayInputs, Inputs, JoinedInputs

REQUIRED = ("features", "labels", "signatures", "pool")
LABELS = ("given", "answers")
OPTIONAL = ("class_names", *LABELS)
MOST_UNASKED = 1 << 28  # bytes that arrays may always take
MOST_INFLATED = 50  # times the file's size that larger arrays may take: features compress to a half, bombs to 1/1000
IN_MEMORY = 1 << 26  # bytes; larger uncompressed arrays stay on disk
BLOCK = 1 << 20
HEADERS = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}  # by the version of the format


def load_arrays(
    path: str | Path, setting: Setting = "zsl", backbone: str | None = None, hold_out: float | None = None
) -> tuple[Problem, Answers | None]:
    """Read a problem from a ``.npz`` file.

    The pool keeps its order in the file, because results are reported in that order. An order by class reveals the
    classes to a method: shuffle the pool before saving it.

    Large arrays stay on disk and are read on demand, if the file is not compressed (``numpy.savez``).

    Args:
        path: A file with `features` (N, D) or (N, C, H, W), `labels` (N,) row numbers of `signatures` or class names,
            `signatures` (L, m), `pool` (N_pool, ...), and optionally `class_names` (L,), `answers` (N_pool,), -1 or ""
            where the class is not known, and `given` (N_pool,), in the same form: labels that a person has given to
            inputs of the pool, for training.
        setting: "zsl" or "gzsl".
        backbone: The backbone for images; None for features.
        hold_out: In "gzsl", the share of each seen class's inputs that is moved to the end of the pool, for evaluation.

    Returns:
        The problem, and its answers, None if there are none. Inputs with a given label have no answer.

    Raises:
        PrenError: If the file cannot be read or its arrays do not fit together.
    """
    path = Path(path)
    with _open_npz(path) as file:
        _check_keys(path, file.files)
        arrays = {key: _read(path, file, key) for key in file.files}
    try:
        problem = _problem(arrays, setting, backbone, str(path))
        given, answers = (_pool_labels(arrays[key], key, problem) if key in arrays else None for key in LABELS)
        if given is not None and (given != UNKNOWN).any():
            problem = replace(problem, given=given)
            answers = None if answers is None else np.where(given == UNKNOWN, answers, UNKNOWN)
        if hold_out is not None:
            problem, answers = _holding_out(problem, answers, hold_out)
        return problem, None if answers is None else Answers(answers)
    except PrenError as error:
        raise PrenError(error.code, f"{path}: {error}") from error


def read_inputs(path: str | Path) -> Inputs:
    """Read inputs to predict: (N, D) features or (N, C, H, W) images.

    Args:
        path: A ``.npy`` file, or a ``.npz`` file that holds them as its only array, or under the key `features` or
            `inputs`. A ``.npy`` file and large uncompressed arrays are memory-mapped.

    Raises:
        PrenError: If the file cannot be read or has other content.
    """
    path = Path(path)
    if path.suffix.lower() not in (".npy", ".npz"):
        raise PrenError("array-format", f"{path} is neither a .npy nor a .npz file: save the inputs with numpy.save.")
    if path.suffix.lower() == ".npy":
        _check_ordinary(path)
        with _explained(path):
            array = np.lib.format.open_memmap(path, mode="r")  # never unpickles
        return ArrayInputs(array, str(path))
    with _open_npz(path) as file:
        keys = [key for key in ("features", "inputs") if key in file.files] or file.files
        if len(keys) != 1:
            held = ", ".join(file.files) or "no array"
            raise PrenError("array-choice", f"{path} holds {held}: keep one array, or name one of them 'inputs'.")
        return ArrayInputs(_read(path, file, keys[0]), f"{path}: {keys[0]}")


def read_vector(path: Path) -> NDArray[np.float64]:
    """Read the signature of one class, (m,) or (1, m), from a ``.npy`` file."""
    array = read_numbers(path)
    if array.ndim not in (1, 2) or array.size != array.shape[-1]:
        raise PrenError("array-shape", f"{path} must hold one row of numbers, not shape {array.shape}.")
    if not np.isfinite(array).all():
        raise PrenError("not-finite", f"{path} holds NaN or infinite values.")
    return array.reshape(-1)


def read_numbers(path: Path) -> NDArray[np.float64]:
    """Read a ``.npy`` file of numbers of any shape."""
    _check_ordinary(path)
    with _explained(path):
        array = np.lib.format.open_memmap(path, mode="r")  # never unpickles
    if array.dtype.kind not in "fiub":
        raise PrenError("array-kind", f"{path} must hold numbers, not {array.dtype}.")
    with np.errstate(over="ignore"):  # values that are too large become infinite
        values: NDArray[np.float64] = array.astype(np.float64)
    return values


def _problem(arrays: dict[str, NDArray[Any]], setting: Setting, backbone: str | None, file: str) -> Problem:
    labels, names = arrays["labels"], arrays.get("class_names")
    if names is not None and (names.ndim != 1 or names.dtype.kind != "U"):
        message = f"class_names must be a list of text (classes,), not {names.dtype} {names.shape}."
        raise PrenError("class-names", message)
    if names is None and labels.dtype.kind == "U":
        raise PrenError("class-names", "labels are class names: add class_names, one name per row of signatures.")
    return Problem.from_arrays(
        arrays["features"],
        labels,
        arrays["signatures"],
        arrays["pool"],
        None if names is None else names.tolist(),
        setting=setting,
        backbone=backbone,
        source={"file": file},
    )


def _pool_labels(labels: NDArray[Any], key: str, problem: Problem) -> NDArray[np.int64]:
    """Turn (N_pool,) row numbers or class names into row numbers, `UNKNOWN` where the class is not known."""
    if labels.shape != (len(problem.pool),):
        count = len(problem.pool)
        message = f"{key} have shape {labels.shape}, but the pool holds {count} inputs: write -1 or '' for unknown."
        raise PrenError("array-shape", message)
    if labels.dtype.kind not in "iuU":
        raise PrenError("array-kind", f"{key} must be whole numbers or class names, not {labels.dtype}.")
    names = problem.classes.names
    unknown, valid = ("", names[0]) if labels.dtype.kind == "U" else (UNKNOWN, 0)
    missing: NDArray[np.bool_] = labels == unknown
    # A valid label stands in for missing ones, so that errors about other labels name the right place.
    filled = np.where(missing, labels.dtype.type(valid), labels)
    try:
        return np.where(missing, UNKNOWN, label_indices(filled, names))
    except PrenError as error:
        raise PrenError(error.code, f"{key}: {error}") from error


def _holding_out(
    problem: Problem, answers: NDArray[np.int64] | None, share: float
) -> tuple[Problem, NDArray[np.int64]]:
    """The problem with a share of its labelled inputs at the end of the pool, and the answers with their classes."""
    unknown = np.full(len(problem.pool), UNKNOWN)
    held = shuffled(held_out(problem.labels, problem.classes.names, share, problem.setting))
    left = np.setdiff1d(np.arange(len(problem.labels)), held)
    given = None if problem.given is None else np.concatenate([problem.given, np.full(len(held), UNKNOWN)])
    divided = replace(
        problem,
        train=problem.train.select(left),
        labels=problem.labels[left],
        pool=JoinedInputs(problem.pool, problem.train.select(held)),
        given=given,
        source={**problem.source, "hold_out": share},
    )
    return divided, np.concatenate([unknown if answers is None else answers, problem.labels[held]])


def _check_ordinary(path: Path) -> None:
    """Refuse pipes and devices, which could block for ever when opened."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise PrenError("not-a-file", f"{path} is a pipe or a device: write the arrays to a file with numpy.savez.")


@contextmanager
def _open_npz(path: Path) -> Iterator[NpzFile]:
    _check_ordinary(path)
    with ExitStack() as stack:
        with _explained(path):
            # Opened here, because NumPy leaves a damaged file open.
            file = np.load(stack.enter_context(path.open("rb")), allow_pickle=False)
        if not isinstance(file, NpzFile):
            raise PrenError("array-format", f"{path} holds one array without a name: write it with numpy.savez.")
        _check_inflated(path, file)
        yield file


def _check_inflated(path: Path, file: NpzFile) -> None:
    """Refuse a file that expands too far; Python reads no more of an array than its declared size."""
    parts = [] if file.zip is None else file.zip.infolist()
    inflated, size = sum(part.file_size for part in parts), path.stat().st_size
    if inflated > MOST_UNASKED and inflated > MOST_INFLATED * size:
        what = f"{size / 1e6:.1f} MB would become {inflated / 1e9:.1f} GB"
        message = f"{path} is compressed too far to hold features ({what}): write it with numpy.savez."
        raise PrenError("array-compressed", message)


def _read(path: Path, file: NpzFile, key: str) -> NDArray[Any]:
    with _explained(f"{path}: {key}"):
        mapped = None if file.zip is None else _mapped(path, file.zip, f"{key}.npy")
        array: Any = file[key] if mapped is None else mapped
    if not isinstance(array, np.ndarray):  # NumPy returns the bytes of other files in the zip file
        raise PrenError("array-format", f"{path}: {key} is not an array: write the file with numpy.savez.")
    return array


def _mapped(path: Path, file: ZipFile, name: str) -> NDArray[Any] | None:
    """A large array of a ``.npz`` file, memory-mapped; None if it is small or compressed.

    Raises:
        ValueError: If it is damaged. (Python's zipfile may raise other exceptions.)
    """
    part = file.NameToInfo.get(name)
    if part is None or part.file_size <= IN_MEMORY or part.compress_type != ZIP_STORED:
        return None
    with file.open(part) as member:
        version = read_magic(member)
        if version not in HEADERS:
            return None
        shape, columns_first, dtype = HEADERS[version](member)
        begin, size = member.tell(), dtype.itemsize * math.prod(shape)
        if dtype.hasobject:
            raise ValueError("pickle")
        if begin + size != part.file_size:
            raise ValueError(f"it has {part.file_size - begin} bytes, not {size}")
        while member.read(BLOCK):  # zipfile compares the checksum at the end
            pass
    place = _place(path, part) + begin
    mapped = np.memmap(path, dtype, "r", offset=place, shape=shape, order="F" if columns_first else "C")
    return np.asarray(mapped)


def _place(path: Path, part: ZipInfo) -> int:
    """Where the content of a part begins: after a header of 30 bytes, its name and its extra field."""
    with path.open("rb") as file:
        file.seek(part.header_offset + 26)
        name, more = struct.unpack("<HH", file.read(4))
    return part.header_offset + 30 + int(name) + int(more)


@contextmanager
def _explained(what: str | Path) -> Iterator[None]:
    """Turn any exception into a `PrenError`: NumPy does not document how it fails on damaged files."""
    try:
        yield
    except FileNotFoundError:
        raise PrenError("file-missing", f"There is no file {what}: check the path.") from None
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
        if "pickle" in reason.lower():  # NumPy's advice is to allow it
            reason = "it holds Python objects, or is not a NumPy file"
        message = f"{what} cannot be read with NumPy ({reason}): write it again as numbers or text."
        raise PrenError("array-unreadable", message) from error


def _check_keys(path: Path, keys: list[str]) -> None:
    for key in keys:
        if key not in REQUIRED + OPTIONAL:
            hint = suggest(key, REQUIRED + OPTIONAL)
            raise PrenError("array-unknown", f"{path} holds an unknown array {key!r}. {hint}")
    missing = [key for key in REQUIRED if key not in keys]
    if missing:
        raise PrenError("array-missing", f"{path} lacks {', '.join(missing)}: it must hold {', '.join(REQUIRED)}.")
