"""The user's own arrays, from NumPy files. Reading one cannot run code (``allow_pickle=False``)."""

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
from pren.data.hold_out import held_out
from pren.foundation.errors import PrenError, suggest
from pren.problem import UNKNOWN, Answers, Problem, Setting, label_indices
from pren.problem.inputs import ArrayInputs, Inputs, JoinedInputs

REQUIRED = ("features", "labels", "signatures", "pool")
LABELS = ("given", "answers")
OPTIONAL = ("class_names", *LABELS)
MOST_UNASKED = 1 << 28  # bytes that arrays may take, however small the file is
MOST_INFLATED = 50  # times the size of a larger one's file: features compress to a half, bombs to a thousandth
IN_MEMORY = 1 << 26  # bytes: a larger array is left on disk where the file has it as it is
BLOCK = 1 << 20
HEADERS = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}  # by the version of the format


def load_arrays(
    path: str | Path, setting: Setting = "zsl", backbone: str | None = None, hold_out: float | None = None
) -> tuple[Problem, Answers | None]:
    """Read a problem from a ``.npz`` file.

    The pool keeps the order it has in the file, because results are reported in that order. If the order follows the
    classes, it says something that a method should not know: shuffle the pool before saving it.

    Large arrays stay on disk and are read as they are needed, if the file is not compressed (``numpy.savez``).

    Args:
        path: A file with `features` (N, D) or (N, C, H, W), `labels` (N,) row numbers of `signatures` or class names,
            `signatures` (L, m), `pool` (N_pool, ...), and optionally `class_names` (L,) and `answers` (N_pool,), where
            -1 or "" means that nobody knows, and `given` (N_pool,), written in the same way: labels that a person has
            given to images of the pool, to learn from.
        setting: "zsl" or "gzsl".
        backbone: The backbone that images go through; None for features.
        hold_out: The share of each seen class's images that goes to the pool, behind the others, in "gzsl", to be
            evaluated with.

    Returns:
        The problem, which the answers have no part in, and the answers, None if there are none. Images with a given
        label have no answer.

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
        path: A ``.npy`` file, which is memory-mapped, or a ``.npz`` file that holds them as its only array, or under
            the key `features` or `inputs`; a large one that is not compressed is memory-mapped, too.

    Raises:
        PrenError: If the file cannot be read or holds something else.
    """
    path = Path(path)
    if path.suffix.lower() not in (".npy", ".npz"):
        raise PrenError("array-format", f"{path} is neither a .npy nor a .npz file: save the inputs with numpy.save.")
    if path.suffix.lower() == ".npy":
        _check_ordinary(path)
        with _explained(path):
            array = np.lib.format.open_memmap(path, mode="r")  # which never unpickles
        return ArrayInputs(array, str(path))
    with _open_npz(path) as file:
        keys = [key for key in ("features", "inputs") if key in file.files] or file.files
        if len(keys) != 1:
            held = ", ".join(file.files) or "no array"
            raise PrenError("array-choice", f"{path} holds {held}: keep one array, or name one of them 'inputs'.")
        return ArrayInputs(_read(path, file, keys[0]), f"{path}: {keys[0]}")


def read_vector(path: Path) -> NDArray[np.float64]:
    """Read the numbers of a ``.npy`` file that describe one class: (m,) or (1, m).

    Raises:
        PrenError: If the file cannot be read or holds something else.
    """
    array = read_numbers(path)
    if array.ndim not in (1, 2) or array.size != array.shape[-1]:
        raise PrenError("array-shape", f"{path} must hold one row of numbers, not shape {array.shape}.")
    if not np.isfinite(array).all():
        raise PrenError("not-finite", f"{path} holds NaN or infinite values.")
    return array.reshape(-1)


def read_numbers(path: Path) -> NDArray[np.float64]:
    """Read a ``.npy`` file of numbers, whatever its shape.

    Raises:
        PrenError: If the file cannot be read or holds something else.
    """
    _check_ordinary(path)
    with _explained(path):
        array = np.lib.format.open_memmap(path, mode="r")  # which never unpickles
    if array.dtype.kind not in "fiub":
        raise PrenError("array-kind", f"{path} must hold numbers, not {array.dtype}.")
    with np.errstate(over="ignore"):  # what is too large for it becomes infinite
        values: NDArray[np.float64] = array.astype(np.float64)
    return values


def _problem(arrays: dict[str, NDArray[Any]], setting: Setting, backbone: str | None, file: str) -> Problem:
    labels, names = arrays["labels"], arrays.get("class_names")
    if names is not None and (names.ndim != 1 or names.dtype.kind != "U"):
        raise PrenError(
            "class-names", f"class_names must be a list of text (classes,), not {names.dtype} {names.shape}."
        )
    if names is None and labels.dtype.kind == "U":
        raise PrenError(
            "class-names", "labels are class names, so class_names is needed too: one name per row of signatures."
        )
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
    """Turn (N_pool,) row numbers or class names into row numbers, `UNKNOWN` where nobody knows."""
    if labels.shape != (len(problem.pool),):
        count = len(problem.pool)
        raise PrenError(
            "array-shape", f"{key} have shape {labels.shape}, but the pool holds {count} inputs: unknown is -1 or ''."
        )
    if labels.dtype.kind not in "iuU":
        raise PrenError("array-kind", f"{key} must be whole numbers or class names, not {labels.dtype}.")
    names = problem.classes.names
    unknown, valid = ("", names[0]) if labels.dtype.kind == "U" else (UNKNOWN, 0)
    nobody_knows: NDArray[np.bool_] = labels == unknown
    # Where nobody knows, any valid label does for now, so that an error about another one counts its place rightly.
    filled = np.where(nobody_knows, labels.dtype.type(valid), labels)
    try:
        return np.where(nobody_knows, UNKNOWN, label_indices(filled, names))
    except PrenError as error:
        raise PrenError(error.code, f"{key}: {error}") from error


def _holding_out(
    problem: Problem, answers: NDArray[np.int64] | None, share: float
) -> tuple[Problem, NDArray[np.int64]]:
    """The problem with a share of its labelled images at the end of the pool, and the answers with their classes."""
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
    """Refuse pipes and devices: opening one could take for ever. Whatever else is wrong shows when it is opened."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise PrenError(
            "not-a-file", f"{path} is a pipe or a device, not a file: write the arrays to one with numpy.save or savez."
        )


@contextmanager
def _open_npz(path: Path) -> Iterator[NpzFile]:
    _check_ordinary(path)
    with ExitStack() as stack:
        with _explained(path):
            # Opened here, because NumPy would leave a damaged file open.
            file = np.load(stack.enter_context(path.open("rb")), allow_pickle=False)
        if not isinstance(file, NpzFile):
            raise PrenError("array-format", f"{path} holds one array without a name: write it with numpy.savez.")
        _check_inflated(path, file)
        yield file


def _check_inflated(path: Path, file: NpzFile) -> None:
    """Refuse a file that would become far larger than it is: Python reads no more of an array than is said here."""
    parts = [] if file.zip is None else file.zip.infolist()
    inflated, size = sum(part.file_size for part in parts), path.stat().st_size
    if inflated > MOST_UNASKED and inflated > MOST_INFLATED * size:
        what = f"{size / 1e6:.1f} MB would become {inflated / 1e9:.1f} GB"
        raise PrenError(
            "array-compressed", f"{path} is compressed too far to hold features ({what}): write it with numpy.savez."
        )


def _read(path: Path, file: NpzFile, key: str) -> NDArray[Any]:
    with _explained(f"{path}: {key}"):
        mapped = None if file.zip is None else _mapped(path, file.zip, f"{key}.npy")
        array: Any = file[key] if mapped is None else mapped
    if not isinstance(array, np.ndarray):  # a zip file may hold anything, and NumPy then returns its bytes
        raise PrenError("array-format", f"{path}: {key} is not an array: write the file with numpy.savez.")
    return array


def _mapped(path: Path, file: ZipFile, name: str) -> NDArray[Any] | None:
    """A large array of a ``.npz`` file, left on disk; None if it is not large, or not as it is.

    Raises:
        ValueError: If it is damaged, or other than it says. (Python's zipfile raises what it likes.)
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
        while member.read(BLOCK):  # to its end, where its checksum is compared
            pass
    place = _place(path, part) + begin
    mapped = np.memmap(path, dtype, "r", offset=place, shape=shape, order="F" if columns_first else "C")
    return np.asarray(mapped)


def _place(path: Path, part: ZipInfo) -> int:
    """Where the content of a part begins: behind a header of 30 bytes, its name, and what else the header holds."""
    with path.open("rb") as file:
        file.seek(part.header_offset + 26)
        name, more = struct.unpack("<HH", file.read(4))
    return part.header_offset + 30 + int(name) + int(more)


@contextmanager
def _explained(what: str | Path) -> Iterator[None]:
    """Say what cannot be read, and why: damaged and hostile files fail in many ways, none of them promised by NumPy."""
    try:
        yield
    except FileNotFoundError:
        raise PrenError("file-missing", f"There is no file {what}: check the path.") from None
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
        if "pickle" in reason.lower():  # NumPy's advice is to allow it
            reason = "it holds Python objects, or is something else"
        raise PrenError(
            "array-unreadable", f"{what} cannot be read with NumPy ({reason}): write it again as numbers or text."
        ) from error


def _check_keys(path: Path, keys: list[str]) -> None:
    for key in keys:
        if key not in REQUIRED + OPTIONAL:
            raise PrenError(
                "array-unknown", f"{path} holds an unknown array {key!r}. {suggest(key, REQUIRED + OPTIONAL)}"
            )
    missing = [key for key in REQUIRED if key not in keys]
    if missing:
        raise PrenError("array-missing", f"{path} lacks {', '.join(missing)}: it must hold {', '.join(REQUIRED)}.")
