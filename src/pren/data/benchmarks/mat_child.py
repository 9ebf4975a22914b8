"""``python -I mat_child.py``: reads MATLAB files for `mat.py`, in a separate process that may crash.

It does not import pren, so that it starts quickly. Every line of standard input is a request in JSON: a path and the
names of variables. The answer is a line of JSON and then the numbers of the arrays that it lists.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

MEMORY = 8 << 30  # a variable of these files has at most 4 GB
PATIENCE = 60  # seconds of processor time for a file, and one more for each megabyte
IDLE = 10  # seconds without a request after which it ends


def main() -> None:
    """Answer requests until the parent ends or sends none for a while."""
    for limit, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # a lower limit is set, or the system has none
            resource.setrlimit(limit, (most, most))
    sys.path[:] = json.loads(sys.argv[1])  # where its parent finds scipy
    for line in sys.stdin:
        path, names = json.loads(line)
        arrays: dict[str, Any] = {}
        try:
            signal.alarm(0)
            patience = PATIENCE + (Path(path).stat().st_size >> 20)
            signal.setitimer(signal.ITIMER_PROF, patience)  # it ends the process even within scipy
            shapes, arrays = read(path, names)
            answer: dict[str, Any] = {"shapes": shapes, "arrays": {n: describe(a) for n, a in arrays.items()}}
        except Exception as error:  # scipy documents none
            answer, arrays = {"error": (str(error).splitlines() or [""])[0] or type(error).__name__}, {}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        for array in arrays.values():
            if array.dtype.kind in "biuf":
                sys.stdout.buffer.write(array.ravel("F").data)
        sys.stdout.buffer.flush()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(IDLE)


def read(path: str, names: list[str]) -> tuple[dict[str, tuple[int, ...]], dict[str, Any]]:
    """The shapes of all variables of a file, and the requested ones that exist, as arrays of real numbers or text."""
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error", MatReadWarning)
        warnings.filterwarnings("error", "Unreadable variable")
        listed = whosmat(path, appendmat=False)
        for name, times in Counter(name for name, _, _ in listed).items():
            if times > 1 and name in names:
                raise ValueError(f"it holds {name} {times} times")
        content = loadmat(path, appendmat=False, variable_names=names) if names else {}
    return {name: shape for name, shape, _ in listed}, {n: plain(n, content[n]) for n in names if n in content}


def plain(name: str, value: Any) -> Any:
    """An array of numbers or of strings; other MATLAB types are refused."""
    import numpy as np

    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biuf":
            return value
        cells = value.ravel().tolist()
        if value.dtype.kind == "O":  # each cell is an array that holds one text
            cells = [cell.item() if isinstance(cell, np.ndarray) and cell.size == 1 else cell for cell in cells]
        if all(isinstance(cell, str) for cell in cells):
            return np.array(cells, dtype=object).reshape(value.shape)
    raise ValueError(f"{name} is neither an ordinary array of real numbers nor text")


def describe(array: Any) -> dict[str, Any]:
    """What the parent needs to rebuild an array; texts are included, numbers follow separately."""
    content = {"texts": array.ravel().tolist()} if array.dtype.kind == "O" else {"dtype": array.dtype.str}
    return {"shape": array.shape, **content}


if __name__ == "__main__":
    main()
