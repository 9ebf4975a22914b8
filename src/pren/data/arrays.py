"""The user's own arrays, from NumPy files. Reading one cannot run code (``allow_pickle=False``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from pren.errors import PrenError, suggest
from pren.inputs import ArrayInputs, Inputs
from pren.problem import UNKNOWN, Answers, Problem, Setting, label_indices

REQUIRED = ("features", "labels", "signatures", "pool")
OPTIONAL = ("class_names", "answers")


def load_arrays(
    path: str | Path, setting: Setting = "zsl", backbone: str | None = None
) -> tuple[Problem, Answers | None]:
    """Read a problem from a ``.npz`` file.

    The pool keeps the order it has in the file, because results are reported in that order. If the order follows the
    classes, it says something that a method should not know: shuffle the pool before saving it.

    Args:
        path: A file with `features` (N, D) or (N, C, H, W), `labels` (N,) row numbers of `signatures` or class names,
            `signatures` (L, m), `pool` (N_pool, ...), and optionally `class_names` (L,) and `answers` (N_pool,), where
            -1 or "" means that nobody knows.
        setting: "zsl" or "gzsl".
        backbone: The backbone that images go through; None for features.

    Returns:
        The problem, which the answers have no part in, and the answers, None if there are none.

    Raises:
        PrenError: If the file cannot be read or its arrays do not fit together.
    """
    path = Path(path)
    with _open_npz(path) as file:
        _check_keys(path, file.files)
        arrays = {key: _read(path, file, key) for key in file.files}
    answers = arrays.pop("answers", None)
    try:
        problem = _problem(arrays, setting, backbone, str(path))
        return problem, None if answers is None else _answers(answers, problem)
    except PrenError as error:
        raise PrenError(f"{path}: {error}") from error


def read_inputs(path: str | Path) -> Inputs:
    """Read inputs to predict from a ``.npy`` file (memory-mapped), or a ``.npz`` file.

    Args:
        path: A file with (N, D) features or (N, C, H, W) images. A ``.npz`` file holds them as its only array, or under
            the key `features` or `inputs`.

    Raises:
        PrenError: If the file cannot be read or holds something else.
    """
    path = Path(path)
    if path.suffix.lower() not in (".npy", ".npz"):
        raise PrenError(f"{path} is neither a .npy nor a .npz file: save the inputs with numpy.save.")
    if path.suffix.lower() == ".npy":
        _check_ordinary(path)
        try:
            array = np.lib.format.open_memmap(path, mode="r")  # which never unpickles
        except Exception as error:
            raise _unreadable(path, error) from error
        return ArrayInputs(array, str(path))
    with _open_npz(path) as file:
        known = [key for key in ("features", "inputs") if key in file.files]
        keys = known or file.files
        if len(keys) != 1:
            raise PrenError(
                f"{path} holds {', '.join(file.files) or 'no array'}: keep one array, or name one of them 'inputs'."
            )
        return ArrayInputs(_read(path, file, keys[0]), f"{path}: {keys[0]}")


def _problem(arrays: dict[str, NDArray[Any]], setting: Setting, backbone: str | None, file: str) -> Problem:
    labels, names = arrays["labels"], arrays.get("class_names")
    if names is not None and (names.ndim != 1 or names.dtype.kind != "U"):
        raise PrenError(f"class_names must be a list of text (classes,), not {names.dtype} {names.shape}.")
    if names is None and labels.dtype.kind == "U":
        raise PrenError("labels are class names, so class_names is needed too: one name per row of signatures.")
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


def _answers(answers: NDArray[Any], problem: Problem) -> Answers:
    """Turn (N_pool,) row numbers or class names into answers."""
    if answers.shape != (len(problem.pool),):
        raise PrenError(
            f"answers have shape {answers.shape}, but the pool holds {len(problem.pool)} inputs: give one answer each, "
            "-1 or '' where it is not known."
        )
    if answers.dtype.kind not in "iuU":
        raise PrenError(f"answers must be whole numbers or class names, not {answers.dtype}.")
    names = problem.classes.names
    unknown, valid = ("", names[0]) if answers.dtype.kind == "U" else (UNKNOWN, 0)
    nobody_knows: NDArray[np.bool_] = answers == unknown
    # Where nobody knows, any valid label does for now, so that an error about another one counts its place rightly.
    filled = np.where(nobody_knows, valid, answers)
    try:
        labels = label_indices(filled, names)
    except PrenError as error:
        raise PrenError(f"answers: {error}") from error
    return Answers(np.where(nobody_knows, UNKNOWN, labels))


def _check_ordinary(path: Path) -> None:
    """Refuse pipes and devices: opening one could take for ever. Whatever else is wrong shows when it is opened."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise PrenError(f"{path} is a pipe or a device, not a file: write the arrays to one with numpy.save or savez.")


@contextmanager
def _open_npz(path: Path) -> Iterator[NpzFile]:
    _check_ordinary(path)
    with ExitStack() as stack:
        try:
            # Opened here, because NumPy would leave a damaged file open.
            file = np.load(stack.enter_context(path.open("rb")), allow_pickle=False)
        except Exception as error:
            raise _unreadable(path, error) from error
        if not isinstance(file, NpzFile):
            raise PrenError(f"{path} holds one array without a name: write it with numpy.savez.")
        yield file


def _read(path: Path, file: NpzFile, key: str) -> NDArray[Any]:
    try:
        array: Any = file[key]
    except Exception as error:
        raise PrenError(
            f"{path}: {key} cannot be read ({_reason(error)}): write the file again, with arrays of numbers or text."
        ) from error
    if not isinstance(array, np.ndarray):  # a zip file may hold anything, and NumPy then returns its bytes
        raise PrenError(f"{path}: {key} is not an array: write the file with numpy.savez.")
    return array


def _check_keys(path: Path, keys: list[str]) -> None:
    for key in keys:
        if key not in REQUIRED + OPTIONAL:
            raise PrenError(f"{path} holds an unknown array {key!r}. {suggest(key, REQUIRED + OPTIONAL)}")
    missing = [key for key in REQUIRED if key not in keys]
    if missing:
        raise PrenError(f"{path} lacks {', '.join(missing)}: it must hold {', '.join(REQUIRED)}.")


def _unreadable(path: Path, error: Exception) -> PrenError:
    """Explain why a file cannot be opened.

    Damaged and hostile files make NumPy, zipfile and the decompressors fail in many ways, none of them promised, so
    every exception comes here.
    """
    if isinstance(error, FileNotFoundError):
        return PrenError(f"There is no file {path}: check the path.")
    return PrenError(
        f"{path} cannot be read as a NumPy file ({_reason(error)}): write it again with numpy.save or numpy.savez."
    )


def _reason(error: Exception) -> str:
    """The first line of an error, without the advice to allow pickles that NumPy gives."""
    text = (str(error).splitlines() or [""])[0].rstrip(".")
    if "pickle" in text.lower():
        return "it holds Python objects, or is something else"
    return text or type(error).__name__
