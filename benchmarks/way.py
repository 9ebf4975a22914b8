"""The way of the data: what one small `pren fit` touches. ``python -m benchmarks.way [ARGUMENTS OF pren fit]``.

Counts, not timings: functions and files of pren that are called, how often the way goes from one file to another, and
how often some things happen that need to happen once.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pren

PACKAGE = str(Path(pren.__file__).parent)
WATCHED = ("validate", "resolved", "fingerprint", "load_model", "load_data")
ARGUMENTS = ["numbers-features", "--method=pren", "--set=heads=2", "--set=rounds=1"]


class Way:
    """Counts which functions of pren are called."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str, int]] = Counter()
        self.switches = 0
        self._last = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a call."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name.startswith("<"):
            return
        self.calls[code.co_filename, code.co_name, code.co_firstlineno] += 1
        self.switches += code.co_filename != self._last
        self._last = code.co_filename

    def report(self) -> list[tuple[str, int]]:
        """The counts."""
        files = {file for file, _, _ in self.calls}
        named: Counter[str] = Counter()
        for (_, name, _), times in self.calls.items():
            named[name] += times
        mat = sum(times for (file, _, _), times in self.calls.items() if Path(file).name.startswith("mat"))
        return [
            ("functions", len(self.calls)),
            ("files", len(files)),
            ("switches between files", self.switches),
            ("calls into data/mat*.py", mat),
            *((f"calls of {name}", named[name]) for name in WATCHED),
        ]


def main() -> None:
    """Follow one command."""
    from pren.cli.__main__ import app

    way, arguments = Way(), ["fit", *(sys.argv[1:] or ARGUMENTS)]
    with tempfile.TemporaryDirectory() as folder:
        app([*arguments, "--out", f"{folder}/first"], standalone_mode=False)  # the first run imports
        threading.setprofile(way)
        sys.setprofile(way)
        try:
            app([*arguments, "--out", f"{folder}/second"], standalone_mode=False)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    for name, count in way.report():
        print(f"{name:26} {count}")


if __name__ == "__main__":
    main()
