"""MATLAB files, read as data that nobody vouches for: whatever is wrong with one becomes a `PrenError` that names it.

Reading one runs no code, but a damaged or hostile file makes scipy fail in many ways, none of them promised, and some
that only `pren.data.mat_tags` can keep from ending the process.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.data.mat_tags import check_tags
from pren.errors import PrenError

Shapes = dict[str, tuple[int, ...]]


def mat_shapes(path: Path) -> Shapes:
    """The variables of a ``.mat`` file and their shapes, without reading them."""
    from scipy.io import whosmat  # late: data that are embedded need not wait for it

    _check_there(path)
    try:
        return {str(name): tuple(shape) for name, shape, _ in whosmat(str(path), appendmat=False)}
    except Exception as error:
        raise _unreadable(path, error) from error


def read_mat(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """Read some variables of a ``.mat`` file, and nothing else of it.

    Args:
        path: A file of MATLAB's version 4 to 7.
        required: Variables that must be there.
        optional: Variables that may be there.

    Raises:
        PrenError: If the file cannot be read, or lacks a variable, or has one that is no array.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadWarning

    _check_there(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", MatReadWarning)  # a variable that cannot be read
            check_tags(path, {*required, *optional})
            content = loadmat(str(path), appendmat=False, variable_names=[*required, *optional])
    except Exception as error:
        raise _unreadable(path, error) from error
    arrays = {name: content[name] for name in (*required, *optional) if name in content}
    missing = [name for name in required if name not in arrays]
    if missing:
        raise PrenError(f"{path} lacks {', '.join(missing)}: it must hold {', '.join(required)}.")
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # version 4 has sparse matrices too
            raise PrenError(f"{path}: {name} is a {type(array).__name__}, not an ordinary array: save it as one.")
    return arrays


def whole_numbers(array: NDArray[Any], what: str, most: int, of: str) -> NDArray[np.int64]:
    """Turn MATLAB's numbers from 1 to `most`, in a row or a column, into (n,) numbers from 0.

    Args:
        array: (n, 1), (1, n) or (n,); MATLAB often keeps whole numbers as floating-point ones.
        what: What to call it in a message.
        most: The largest number allowed.
        of: What the numbers count, such as "images".
    """
    if array.dtype.kind not in "fiu" or not _is_one_line(array):
        raise PrenError(f"{what} must be one row or column of numbers, not {array.dtype} of shape {array.shape}.")
    values = array.reshape(-1)
    wrong = (values != np.floor(values)) | (values < 1) | (values > most)  # and NaN, which equals nothing
    if wrong.any():
        place = int(wrong.argmax())
        raise PrenError(
            f"{what} holds {values[place]} (entry {place + 1}), but there are {most} {of}, counted from 1 as MATLAB "
            "does: the file is damaged, or belongs to other data."
        )
    return values.astype(np.int64) - 1


def texts(array: NDArray[Any], what: str) -> list[str]:
    """Turn a cell array of text, or a matrix of characters, into strings without blanks around them."""
    cells = array.reshape(-1).tolist()
    if array.dtype.kind == "O":  # each cell is an array that holds one text
        cells = [c.item() if isinstance(c, np.ndarray) and c.size == 1 else c for c in cells]
    if not all(isinstance(cell, str) for cell in cells) or not _is_one_line(array):
        raise PrenError(f"{what} must be one row or column of text, not {array.dtype} of shape {array.shape}.")
    return [cell.strip() for cell in cells]


def _is_one_line(array: NDArray[Any]) -> bool:
    return array.size in (0, max(array.shape, default=1))


def _check_there(path: Path) -> None:
    if not path.is_file():  # a pipe would keep the reader waiting for ever
        raise PrenError(f"{path} is not an ordinary file." if path.exists() else f"There is no file {path}.")


def _unreadable(path: Path, error: Exception) -> PrenError:
    if isinstance(error, NotImplementedError) and "7.3" in str(error):
        return PrenError(
            f"{path} is a MATLAB 7.3 file (HDF5), which is not read here: save it again in MATLAB with the option "
            "'-v7', or with scipy.io.savemat."
        )
    reason = (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
    return PrenError(f"{path} cannot be read as a MATLAB file ({reason}): it is damaged or something else.")
