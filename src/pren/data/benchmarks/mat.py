"""Read MATLAB files that may be damaged: every fault becomes a `PrenError` that names the file.

scipy (1.17 at least) looks up an element's type in a table without a check, so a single damaged byte can end the
process (scipy's pull request 25829), and some bytes can request all memory. So a child process reads them.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.data.benchmarks import mat_child
from pren.foundation.children import ended_by
from pren.foundation.errors import PrenError

Shapes = dict[str, tuple[int, ...]]
TRIES = 3  # of a request, because the child may end before it arrives


def mat_shapes(path: Path) -> Shapes:
    """The variables of a ``.mat`` file and their shapes, without reading them."""
    return _READER.ask(path, ())[0]


def read_mat(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """Read some variables of a ``.mat`` file (MATLAB's version 4 to 7): real numbers, or objects that are strings."""
    arrays = _READER.ask(path, (*required, *optional))[1]
    missing = [name for name in required if name not in arrays]
    if missing:
        raise PrenError("mat-missing-key", f"{path} lacks {', '.join(missing)}: it must hold {', '.join(required)}.")
    return arrays


class _WasIdleError(Exception):
    """The child ended because it was idle."""


class _Reader:
    """The child process: started on demand, restarted after a crash, and ended when it is idle.

    One child reads many files, because importing scipy takes 0.3 s.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._used = 0.0
        atexit.register(self._stop)

    def ask(self, path: Path, names: Sequence[str]) -> tuple[Shapes, dict[str, NDArray[Any]]]:
        """The shapes of all variables, and the named variables that exist."""
        if not path.is_file():  # reading a pipe may never end
            message = f"{path} is not an ordinary file." if path.exists() else f"There is no file {path}."
            raise PrenError("file-missing", message)
        with self._lock:
            for _ in range(TRIES):
                with suppress(_WasIdleError):  # on a busy machine it can end before the request arrives
                    answer, arrays = self._asked(path, names)
                    break
            else:
                raise PrenError("mat-busy", f"The machine is too busy to read {path}: try again.")
            self._used = time.monotonic()
        if "error" in answer:
            raise _unreadable(path, answer["error"])
        return {name: tuple(shape) for name, shape in answer["shapes"].items()}, arrays

    def _asked(self, path: Path, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        child = self._running()
        try:
            answer = _answer(child, [str(path.absolute()), names])
            return answer, {name: _array(child, **facts) for name, facts in answer.get("arrays", {}).items()}
        except BaseException as error:
            self._stop()
            if isinstance(error, (OSError, ValueError)):  # it ended within an answer
                if child.returncode == -signal.SIGALRM:
                    raise _WasIdleError from None
                raise _unreadable(path, _cause(child.returncode)) from None
            raise

    def _running(self) -> subprocess.Popen[bytes]:
        child = self._child
        if child is None or child.poll() is not None or time.monotonic() - self._used > mat_child.IDLE / 2:
            self._stop()
            self._child = child = subprocess.Popen(
                [sys.executable, "-I", mat_child.__file__, json.dumps(sys.path)],
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # each thread reserves memory
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so that Ctrl-C only reaches the parent
            )
        return child

    def _stop(self) -> None:
        if self._child is not None:
            with suppress(OSError), self._child as child:  # closes its pipes and waits for its end
                child.kill()
            self._child = None


_READER = _Reader()


def _answer(child: subprocess.Popen[bytes], request: Any) -> dict[str, Any]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(request).encode() + b"\n")
    child.stdin.flush()
    return dict(json.loads(child.stdout.readline()))


def _array(
    child: subprocess.Popen[bytes], shape: list[int], texts: list[str] | None = None, dtype: str = ""
) -> NDArray[Any]:
    if texts is not None:
        return np.array(texts, dtype=object).reshape(shape)
    assert child.stdout is not None
    if np.dtype(dtype).kind not in "biuf":
        raise ValueError(dtype)
    array = np.empty(shape, dtype, order="F")
    if child.stdout.readinto(array.ravel("K").view(np.uint8).data) < array.nbytes:  # type: ignore[attr-defined]
        raise ValueError(shape)
    return array


def _cause(code: int) -> str:
    if code == -signal.SIGPROF:
        return "it takes too long"
    how = f"crashed with {ended_by(code)}" if code < 0 else f"ended with code {code}"
    return f"it is damaged (the reader {how})"


def whole_numbers(array: NDArray[Any], what: str, most: int, of: str) -> NDArray[np.int64]:
    """Turn MATLAB's numbers from 1 to `most`, in a row or a column, into (n,) numbers from 0.

    Messages call them `what` and say what they count (`of`), such as "images".
    """
    if array.dtype.kind not in "fiu" or not _is_one_line(array):
        message = f"{what} must be one row or column of numbers, not {array.dtype} of shape {array.shape}."
        raise PrenError("mat-shape", message)
    values = array.reshape(-1)
    wrong = (values != np.floor(values)) | (values < 1) | (values > most)  # NaN is wrong too: it equals nothing
    if wrong.any():
        place = int(wrong.argmax())
        must = f"must be a whole number from 1 to {most} (the {of}): the file is damaged, or belongs to other data"
        raise PrenError("mat-entry", f"{what}: entry {place + 1} is {values[place]}, but {must}.")
    return values.astype(np.int64) - 1


def texts(array: NDArray[Any], what: str) -> list[str]:
    """Turn a cell array of text, or a matrix of characters, into stripped strings."""
    if array.dtype != object or not _is_one_line(array):
        message = f"{what} must be one row or column of text, not {array.dtype} of shape {array.shape}."
        raise PrenError("mat-shape", message)
    return [cell.strip() for cell in array.ravel().tolist()]


def _is_one_line(array: NDArray[Any]) -> bool:
    return array.size in (0, max(array.shape, default=1))


def _unreadable(path: Path, reason: str) -> PrenError:
    if "HDF reader" in reason:
        return PrenError("mat-hdf5", f"{path} is a MATLAB 7.3 file (HDF5): save it with the option '-v7'.")
    return PrenError("mat-unreadable", f"{path} cannot be read as a MATLAB file: {reason.rstrip('.')}.")
